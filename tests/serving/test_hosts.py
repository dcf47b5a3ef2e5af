"""Proves that a server answers for its own hosts alone, on every path."""

import pytest

from albert_tf.serving.hosts import Hosts
from tests.serving.toy_server import run, toy_server, write_version

LOCAL, NAMED = Hosts(), Hosts(frozenset({"models.example"}))
REACHED = Hosts(frozenset({"models.example"}), takes_addresses=True)


@pytest.mark.parametrize(
    ("hosts", "host", "origin", "complaint"),
    [
        (LOCAL, "localhost", None, None),
        (LOCAL, "LocalHost:8501", "http://localhost:3000", None),
        (LOCAL, "127.0.0.1:8501", "http://127.0.0.1:8501", None),
        (LOCAL, "[::1]:8501", "http://[::1]:8501", None),
        (LOCAL, "127.8.9.10", None, None),
        (LOCAL, "rebound.example:8501", None, "--allowed-host rebound.example"),
        (LOCAL, "localhost.example", None, "is not this server"),
        (LOCAL, "example@localhost", None, "is not this server"),
        (LOCAL, "10.0.0.5:8501", None, "is not this server"),
        (LOCAL, "", None, "--allowed-host NAME"),
        (
            LOCAL,
            "localhost",
            "https://other.example",
            "if the name is yours, start it with --allowed-host other.example",
        ),
        (LOCAL, "localhost", "http://10.0.0.5:8501", "is not this server"),
        (LOCAL, "localhost", "null", "'null' is not this server"),
        (LOCAL, "localhost", "", "'' is not this server"),
        (LOCAL, "localhost", "http://localhost.example", "is not this server"),
        (NAMED, "models.example:443", "https://models.example", None),
        (NAMED, "localhost", "https://models.example", None),
        (NAMED, "a.models.example", None, "is not this server"),
        (REACHED, "10.1.2.3:8501", None, None),
        (REACHED, "10.1.2.3:8501", "http://10.1.2.3:8501", None),
        (REACHED, "10.1.2.3:8501", "http://10.9.9.9", "is not this server"),
        (REACHED, "other.example", None, "is not this server"),
    ],
)
def test_hosts_and_origins(hosts, host, origin, complaint):
    refusal = hosts.refusal(host, [] if origin is None else [origin])
    assert (refusal is None) == (complaint is None)
    assert complaint is None or complaint in refusal


@pytest.mark.parametrize(
    ("address", "names", "hosts"),
    [
        ("127.0.0.1", (), LOCAL),
        ("localhost", (), LOCAL),
        ("::1", ("Models.example",), NAMED),
        ("0.0.0.0", (), None),
        ("::", ("models.example",), REACHED),
    ],
)
def test_the_address_decides(address, names, hosts):
    assert Hosts.of_server(address, names) == hosts


@pytest.mark.parametrize("name", ["http://models.example", "models.example:80", "a/b", ""])
def test_a_name_has_no_scheme_and_port(name):
    with pytest.raises(ValueError, match="`--allowed-host` must be a name without scheme and port"):
        Hosts.of_server("127.0.0.1", (name,))


def test_every_path_is_checked(tmp_path):
    write_version(tmp_path / "task", 1)
    paths = ("/", "/playground.js", "/v1/models", "/v1/models/task", "/metrics", "/healthz", "/readyz")
    model = "/v1/models/task:predict"

    async def scenario():
        async with toy_server(tmp_path, hosts=NAMED) as server:

            async def replies(**headers):
                got = [await server.client.get(path, headers=headers) for path in (*paths, "/none")]
                return [*got, await server.client.post(model, json={"instances": ["a"]}, headers=headers)]

            good = await replies(host="models.example")
            assert [reply.status_code for reply in good] == [200] * len(paths) + [404, 200]
            for headers in ({"host": "other"}, {"host": "localhost", "origin": "https://other"}):
                bad = await replies(**headers)
                assert {reply.status_code for reply in bad} == {403}
                assert all(list(reply.json()) == ["error"] for reply in bad)

    run(scenario)

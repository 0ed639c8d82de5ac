"""Marketplaces: where they come from, what they offer, and what happens when they are gone."""

from __future__ import annotations

import http.server
import json
import shutil
import socketserver
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.bundle.workbench import marketplace, skill, whole_plugin, write_files

from robota.sdk import BundleError, BundlePluginInstaller, BundlePluginLoader, MarketplaceClient
from robota.sdk.bundle import fetching
from robota.sdk.bundle.source import parse_source, read_source


def git(cwd: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Tester", "-c", "user.email=tester@example.com", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, *arguments], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def market(tmp_path: Path) -> Path:
    """A marketplace with two plugins, in a repository."""
    root = marketplace(
        tmp_path / "served" / "market",
        "market",
        {
            "helper": {"category": "development", "tags": ["words"], "version": "1.0.0"},
            "talker": {"description": "Talks a lot.", "keywords": ["speech"], "category": "fun"},
        },
    )
    write_files(root / "plugins" / "helper", whole_plugin())
    write_files(root / "plugins" / "talker", {"skills/talk/SKILL.md": skill("talk")})
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "first")
    return root


class GitHandler(socketserver.BaseRequestHandler):
    """git's own server for one connection."""

    base = ""

    def handle(self) -> None:
        command = ["git", "daemon", "--inetd", "--export-all", f"--base-path={self.base}", self.base]
        subprocess.run(
            command, stdin=self.request, stdout=self.request, stderr=subprocess.DEVNULL, check=False
        )


class GitServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


@pytest.fixture
def server(tmp_path: Path, market: Path) -> Iterator[str]:
    """The repositories of a directory, over git's own protocol."""
    handler = type("Handler", (GitHandler,), {"base": str(tmp_path / "served")})
    with GitServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"git://127.0.0.1:{serving.server_address[1]}"
        serving.shutdown()
        thread.join()


def test_inventory_20_line_37_the_client_knows_sources_has_a_default_searches_and_installs(
    tmp_path: Path, market: Path
) -> None:
    client = MarketplaceClient(tmp_path / "plugins")
    assert [each.name for each in client.list()] == ["robota"]

    assert client.add(str(market)) == "market"

    assert [each.name for each in client.list()] == ["robota", "market"]
    assert [each.name for each in client.plugins("market")] == ["helper", "talker"]
    by_name, by_keyword, by_category = (
        client.search("HELP"),
        client.search("speech"),
        client.search(category="fun"),
    )
    assert [each.id for each in by_name] == ["helper@market"]
    assert [each.id for each in by_keyword] == ["talker@market"]
    assert [each.id for each in by_category] == ["talker@market"]
    assert {"review@robota", "outline@robota"} <= {each.id for each in client.search("", "development")}

    installer = BundlePluginInstaller(tmp_path / "plugins", marketplaces=client)
    installer.install("helper", "market")
    installer.install("outline", "robota")
    names = [each.name for each in BundlePluginLoader(tmp_path / "plugins").load_all()]
    assert names == ["helper", "outline"]

    client.remove("market")
    assert [each.name for each in client.list()] == ["robota"]
    assert list(installer.installed) == ["outline@robota"]


def test_a_marketplace_is_cloned_from_a_git_server_and_updated(
    tmp_path: Path, market: Path, server: str
) -> None:
    client = MarketplaceClient(tmp_path / "plugins")
    assert client.add(f"{server}/market") == "market"
    installer = BundlePluginInstaller(tmp_path / "plugins", marketplaces=client)
    first = installer.install("talker", "market")
    assert first.version == git(market, "rev-parse", "HEAD")[:12]

    write_files(market / "plugins" / "talker", {"skills/shout/SKILL.md": skill("shout")})
    git(market, "add", ".")
    git(market, "commit", "--quiet", "-m", "second")
    assert client.update("market") == ["market"]
    with installer.stage("talker", "market", update=True) as staged:
        second = installer.commit(staged)

    assert second.version == git(market, "rev-parse", "HEAD")[:12]
    (plugin,) = BundlePluginLoader(tmp_path / "plugins").load_all()
    assert [each.name for each in plugin.skills] == ["talker:shout", "talker:talk"]
    assert not Path(first.install_path).exists()


def test_a_branch_a_tag_and_a_commit_pin_what_is_fetched(tmp_path: Path, market: Path, server: str) -> None:
    commit = git(market, "rev-parse", "HEAD")
    git(market, "tag", "v1")
    (market / ".claude-plugin" / "marketplace.json").write_text(
        '{"name": "market", "owner": {"name": "x"}, "plugins": []}'
    )
    git(market, "commit", "--quiet", "-am", "emptied")
    for place, pin in enumerate(("v1", commit)):
        client = MarketplaceClient(tmp_path / f"plugins{place}")
        client.add(f"{server}/market#{pin}")
        assert len(client.plugins("market")) == 2
        client.update()
        assert len(client.plugins("market")) == 2

    client = MarketplaceClient(tmp_path / "plugins")
    client.add(f"{server}/market")
    assert client.plugins("market") == []


def test_plugins_come_from_other_repositories_and_from_directories_of_them(
    tmp_path: Path, market: Path, server: str
) -> None:
    own = write_files(tmp_path / "served" / "own", whole_plugin("own"))
    git(own, "init", "--quiet")
    git(own, "add", ".")
    git(own, "commit", "--quiet", "-m", "own")
    sources: dict[str, Any] = {
        "own": {"source": "url", "url": f"{server}/own"},
        "part": {"source": "git-subdir", "url": f"{server}/market", "path": "plugins/talker"},
        "pinned": {"source": "url", "url": f"{server}/own", "sha": git(own, "rev-parse", "HEAD")},
        "wrong": {"source": "url", "url": f"{server}/own", "sha": "0" * 40},
        "gone": {"source": "github", "repo": "../../etc"},
        "package": {"source": "npm", "package": "left-pad"},
        "outside": {"source": "git-subdir", "url": f"{server}/market", "path": "../.."},
    }
    root = marketplace(
        tmp_path / "other", "other", {name: {"source": value} for name, value in sources.items()}
    )
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(str(root))
    installer = BundlePluginInstaller(tmp_path / "plugins", marketplaces=client)

    for name in ("own", "part", "pinned"):
        installer.install(name, "other")
    said = {}
    for name in ("wrong", "gone", "package", "outside"):
        with pytest.raises(BundleError) as caught:
            installer.install(name, "other")
        said[name] = str(caught.value)

    assert list(installer.installed) == ["own@other", "part@other", "pinned@other"]
    assert "git fetch failed" in said["wrong"]
    assert "no usable source" in said["gone"]
    assert "'npm': packages of npm can run scripts" in said["package"]
    assert "malformed" in said["outside"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None: ...

    def do_GET(self) -> None:
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", "/" + self.path.removeprefix("/moved/"))
            self.end_headers()
        elif self.path.startswith("/inside/"):
            self.send_response(302)
            self.send_header("Location", "http://[::1]/secret.zip")
            self.end_headers()
        else:
            super().do_GET()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    handler = partial(Quiet, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_marketplace_comes_as_an_archive_over_http(tmp_path: Path, market: Path, web: str) -> None:
    with zipfile.ZipFile(tmp_path / "served" / "market.zip", "w") as file:
        for path in sorted(market.rglob("*")):
            if path.is_file() and ".git" not in path.parts:
                file.write(path, f"market-main/{path.relative_to(market)}")
    told: list[str] = []
    client = MarketplaceClient(tmp_path / "plugins", tell=told.append)

    assert client.add(f"{web}/moved/market.zip") == "market"

    BundlePluginInstaller(tmp_path / "plugins", marketplaces=client).install("helper", "market")
    assert any("100%" in each for each in told)


def test_a_marketplace_may_be_the_address_of_its_manifest_alone(
    tmp_path: Path, market: Path, server: str, web: str
) -> None:
    source = {"source": "git-subdir", "url": f"{server}/market", "path": "plugins/helper"}
    entries = {"helper": {"source": source}, "talker": {}}
    manifest = marketplace(tmp_path / "bare", "bare", entries) / ".claude-plugin" / "marketplace.json"
    shutil.copy(manifest, tmp_path / "served" / "marketplace.json")
    client = MarketplaceClient(tmp_path / "plugins")

    assert client.add(f"{web}/marketplace.json") == "bare"

    assert client.update("bare") == ["bare"]
    installer = BundlePluginInstaller(tmp_path / "plugins", marketplaces=client)
    assert installer.install("helper", "bare").version == "1.0.0"
    with pytest.raises(BundleError, match="has no directory"):
        installer.install("talker", "bare")


def test_a_repository_that_is_too_large_is_refused_and_leaves_nothing(
    tmp_path: Path, market: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MAX_REPOSITORY", 10_000)
    client = MarketplaceClient(tmp_path / "plugins")

    with pytest.raises(BundleError, match=r"market is larger than 0 MB: refused\."):
        client.add(f"{server}/market")

    assert list((tmp_path / "plugins").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"), [("missing.zip", "says 404"), ("inside/x.zip", "leads to this machine")]
)
def test_an_archive_that_cannot_be_had_is_named(
    tmp_path: Path, market: Path, web: str, name: str, said: str
) -> None:
    client = MarketplaceClient(tmp_path / "plugins")
    with pytest.raises(BundleError, match=said):
        client.add(f"{web}/{name}")

    assert not [each for each in (tmp_path / "plugins").iterdir() if each.name != "known_marketplaces.json"]


def test_a_marketplace_cannot_send_anybody_to_addresses_that_are_not_public(tmp_path: Path, web: str) -> None:
    source = {"source": "archive", "url": f"{web}/helper.zip"}
    root = marketplace(tmp_path / "m", "m", {"helper": {"source": source}})
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(str(root))

    with pytest.raises(BundleError, match="leads to this machine"):
        BundlePluginInstaller(tmp_path / "plugins", marketplaces=client).install("helper", "m")


def test_a_marketplace_from_elsewhere_cannot_name_what_is_on_this_machine(
    tmp_path: Path, market: Path, server: str
) -> None:
    for source in (
        {"source": "directory", "path": str(tmp_path)},
        {"source": "url", "url": f"file://{market}"},
    ):
        entry = {"name": "inside", "source": source}
        manifest = {"name": "market", "owner": {"name": "x"}, "plugins": [entry]}
        (market / ".claude-plugin" / "marketplace.json").write_text(json.dumps(manifest))
        git(market, "commit", "--quiet", "-am", "inside")
        client = MarketplaceClient(tmp_path / source["source"])
        client.add(f"{server}/market")

        with pytest.raises(BundleError, match="a directory of this machine"):
            BundlePluginInstaller(tmp_path / source["source"], marketplaces=client).install(
                "inside", "market"
            )


def test_a_marketplace_that_vanished_is_named_and_the_others_are_searched(
    tmp_path: Path, market: Path
) -> None:
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(str(market))
    shutil.rmtree(market)

    assert {each.marketplace for each in client.search()} == {"robota"}
    assert "has vanished" in str(client.problems[0])
    with pytest.raises(BundleError, match="has vanished"):
        client.plugins("market")
    assert client.update() == ["robota"]
    assert f"There is no directory {market}: create it" in str(client.problems[0])
    client.remove("market")
    assert [each.name for each in client.list()] == ["robota"]


def test_a_git_server_that_vanished_leaves_what_was_fetched(tmp_path: Path, market: Path) -> None:
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(f"file://{market}")
    shutil.rmtree(market)

    with pytest.raises(BundleError, match="git fetch failed"):
        client.update("market")
    assert len(client.plugins("market")) == 2


def test_marketplaces_of_settings_are_known_and_fetched_when_they_are_needed(
    tmp_path: Path, market: Path
) -> None:
    extra = {
        "market": {"source": {"source": "directory", "path": str(market)}},
        "odd": {"source": {"source": "npm"}},
    }
    client = MarketplaceClient(tmp_path / "plugins", extra=extra)

    assert [each.name for each in client.list()] == ["robota", "market", "odd"]
    assert [each.name for each in client.plugins("market")] == ["helper", "talker"]
    with pytest.raises(BundleError, match="packages of npm"):
        client.plugins("odd")


def test_a_marketplace_that_is_known_already_or_has_no_manifest_is_refused(
    tmp_path: Path, market: Path
) -> None:
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(str(market))
    (tmp_path / "empty").mkdir()
    impostor = marketplace(tmp_path / "impostor", "robota", {})

    for source, said in ((market, "already"), (tmp_path / "empty", "no marketplace"), (impostor, "already")):
        with pytest.raises(BundleError, match=said):
            client.add(str(source))
    with pytest.raises(BundleError, match="cannot be removed"):
        client.remove("robota")


def test_entries_that_cannot_be_used_are_named_and_the_others_count(tmp_path: Path) -> None:
    entries = [
        {"name": "a"},
        {"source": "./x"},
        7,
        {"name": "../b", "source": "./b"},
        {"name": "c", "source": "./c"},
    ]
    manifest = {"name": "m", "plugins": [*entries, {"name": "c", "source": "./d"}]}
    write_files(tmp_path / "m", {".claude-plugin/marketplace.json": manifest})
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(str(tmp_path / "m"))

    assert [each.name for each in client.search("c") if each.marketplace == "m"] == ["c"]
    assert len(client.problems) == 6


def test_the_root_of_plugins_is_put_before_their_paths(tmp_path: Path) -> None:
    root = marketplace(
        tmp_path / "m", "m", {"helper": {"source": "helper"}, "escape": {"source": "../.."}},
        metadata={"pluginRoot": "./plugins"},
    )  # fmt: skip
    write_files(root / "plugins" / "helper", whole_plugin())
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(str(root))
    installer = BundlePluginInstaller(tmp_path / "plugins", marketplaces=client)

    installer.install("helper", "m")
    with pytest.raises(BundleError, match="leads out of the marketplace"):
        installer.install("escape", "m")


def test_without_strict_the_marketplace_says_what_a_plugin_consists_of(tmp_path: Path) -> None:
    root = marketplace(
        tmp_path / "m",
        "m",
        {
            "part": {"source": "./", "strict": False, "skills": ["./skills/one"]},
            "both": {"source": "./own", "strict": False, "skills": ["./skills/one"]},
        },
    )
    write_files(root, {"skills/one/SKILL.md": skill("one"), "skills/two/SKILL.md": skill("two")})
    write_files(root / "own", whole_plugin("both"))
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(str(root))
    installer = BundlePluginInstaller(tmp_path / "plugins", marketplaces=client)

    installer.install("part", "m")
    with pytest.raises(BundleError, match="strict: false"):
        installer.install("both", "m")

    (plugin,) = BundlePluginLoader(tmp_path / "plugins").load_all()
    assert [each.name for each in plugin.skills] == ["part:one"]


def test_nothing_of_a_repository_is_run_when_it_is_fetched(tmp_path: Path, market: Path) -> None:
    (market / ".gitattributes").write_text("* filter=evil\n")
    (market / ".gitmodules").write_text('[submodule "x"]\n  path = x\n  url = ext::sh -c touch% fired\n')
    hook = market / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/fired\n")
    hook.chmod(0o755)
    git(market, "add", ".")
    git(market, "commit", "--quiet", "-m", "evil")

    MarketplaceClient(tmp_path / "plugins").add(f"file://{market}")

    assert not (tmp_path / "fired").exists()


@pytest.mark.parametrize(
    ("text", "kind", "address", "pin"),
    [
        ("owner/name", "github", "https://github.com/owner/name.git", ""),
        ("owner/name#v1", "github", "https://github.com/owner/name.git", "v1"),
        ("owner/name@v1", "github", "https://github.com/owner/name.git", "v1"),
        ("https://example.com/a/b.git#main", "git", "https://example.com/a/b.git", "main"),
        ("git@example.com:a/b.git", "git", "git@example.com:a/b.git", ""),
        ("https://example.com/m.tar.gz", "archive", "https://example.com/m.tar.gz", ""),
        ("./market", "directory", "/w/market", ""),
    ],
)
def test_sources_are_read_as_people_write_them(text: str, kind: str, address: str, pin: str) -> None:
    source = parse_source(text, "/w")

    assert (source.kind, source.address, source.ref) == (kind, address, pin)
    if kind != "directory":
        assert read_source(json.loads(json.dumps(source.to_json())), what="x") == source


@pytest.mark.parametrize(
    "text", ["ext::sh -c id", "--upload-pack=id", "https://x/a#--evil", "nothing", "", "a b/c", "ftp://x/y"]
)
def test_what_is_no_source_is_refused(text: str) -> None:
    with pytest.raises(BundleError):
        parse_source(text, "/w")

"""Installing: whole or not at all, in two scopes, on and off, and never something nobody agreed to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.bundle.workbench import SERVER, marketplace, skill, whole_plugin, write_files

from robota.sdk import BundleError, BundlePluginInstaller, BundlePluginLoader, MarketplaceClient
from robota.sdk.bundle.dependencies import stage_together
from robota.sdk.bundle.desk import BundleDesk
from robota.sdk.interactive import InteractiveSession
from robota.sdk.places import Places
from robota.testing import ScriptedProvider


@pytest.fixture
def market(tmp_path: Path) -> Path:
    root = marketplace(tmp_path / "market", "market", {"helper": {}, "served": {}, "broken": {}})
    write_files(root / "plugins" / "helper", whole_plugin())
    write_files(root / "plugins" / "served", whole_plugin("served") | SERVER)
    write_files(root / "plugins" / "broken", {".claude-plugin/plugin.json": "{"})
    return root


@pytest.fixture
def installer(tmp_path: Path, market: Path) -> BundlePluginInstaller:
    client = MarketplaceClient(tmp_path / "home" / "plugins")
    client.add(str(market))
    return BundlePluginInstaller(tmp_path / "home" / "plugins", marketplaces=client)


def test_inventory_20_line_38_two_scopes_a_registry_file_and_every_plugin_on_or_off(
    places: Places, market: Path
) -> None:
    desk = BundleDesk(places)
    desk.add_marketplace(str(market))
    for scope, home in (("user", places.user()), ("project", places.project(".robota"))):
        installer = desk.installer("user" if scope == "user" else "project")
        plugins = os.path.join(home, "plugins")

        installer.install("helper", "market")

        registry = json.loads(Path(plugins, "installed_plugins.json").read_text())
        assert registry["helper@market"]["version"] == "1.0.0"
        assert registry["helper@market"]["installPath"] == "cache/market/helper/1.0.0"
        assert Path(plugins, "cache/market/helper/1.0.0/skills/audit/SKILL.md").exists()
        installer.disable("helper@market")
        settings = json.loads(Path(home, "settings.json").read_text())
        assert settings["enabledPlugins"] == {"helper@market": False}
        assert BundlePluginLoader(plugins, settings["enabledPlugins"]).load_all() == []
        installer.enable("helper")
        settings = json.loads(Path(home, "settings.json").read_text())
        assert len(BundlePluginLoader(plugins, settings["enabledPlugins"]).load_all()) == 1
        installer.uninstall("helper@market")
        assert not installer.installed
        assert not Path(plugins, "cache", "market").exists()


def test_what_cannot_be_installed_leaves_nothing_behind(installer: BundlePluginInstaller) -> None:
    before = sorted(os.listdir(installer.plugins_dir))

    for name, said in (
        ("broken", "not JSON"),
        ("missing", "no plugin 'missing'"),
        ("../x", "cannot be the name"),
    ):
        with pytest.raises(BundleError, match=said):
            installer.install(name, "market")

    assert sorted(os.listdir(installer.plugins_dir)) == before
    assert not installer.installed


def test_a_plugin_with_a_link_that_leads_out_is_refused(
    installer: BundlePluginInstaller, market: Path
) -> None:
    (market / "plugins" / "helper" / "secret").symlink_to("/etc/passwd")

    with pytest.raises(BundleError, match="leads out"):
        installer.install("helper", "market")
    assert not installer.installed


CUT = """
import os, signal, sys
from robota.sdk import BundlePluginInstaller
from robota.sdk.bundle import installer as module
installer = BundlePluginInstaller(sys.argv[1])
rename, count = os.rename, [int(sys.argv[2])]
def cut(*given):
    if count[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    count[0] -= 1
    return rename(*given)
os.rename = cut
put = installer._registry.put
def registered(plugin):
    if sys.argv[2] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return put(plugin)
installer._registry.put = registered
installer.install("helper", "market")
"""


@pytest.mark.parametrize("moment", ["0", "1"])
def test_a_kill_in_the_middle_leaves_nothing_half_installed(
    installer: BundlePluginInstaller, moment: str
) -> None:
    """Before the files are moved, and after that, before the registry knows of them."""
    done = subprocess.run([sys.executable, "-c", CUT, installer.plugins_dir, moment], check=False)
    assert done.returncode == -signal.SIGKILL

    assert not installer.installed
    installer.install("helper", "market")

    assert list(installer.installed) == ["helper@market"]
    (plugin,) = BundlePluginLoader(installer.plugins_dir).load_all()
    assert plugin.id == "helper@market"


def test_what_is_installed_cannot_be_installed_again_and_ids_are_told_apart(
    installer: BundlePluginInstaller,
) -> None:
    installer.install("helper", "market")

    with pytest.raises(BundleError, match="installed already"):
        installer.install("helper", "market")
    with pytest.raises(BundleError, match="did you mean 'helper@market'"):
        installer.disable("helper@markt")


def test_the_report_says_what_a_plugin_runs_before_anybody_agrees(installer: BundlePluginInstaller) -> None:
    with installer.stage("served", "market") as staged:
        told = "\n".join(staged.report.describe())

    assert 'PreToolUse (Read): bash "${CLAUDE_PLUGIN_ROOT}/note.sh"' in told
    assert "words: ${CLAUDE_PLUGIN_ROOT}/server --data" in told
    assert "plugin__served__count: cat" in told
    assert "Added to the system prompt" in told
    assert "/served:audit, /served:tidy" in told
    assert not installer.installed
    assert not [name for name in os.listdir(installer.plugins_dir) if name.startswith(".staging")]


def test_hosts_and_variables_of_scripts_are_named(installer: BundlePluginInstaller, market: Path) -> None:
    script = 'curl -H "Auth: $MY_TOKEN" https://api.example.com/v1\n'
    (market / "plugins" / "helper" / "send.sh").write_text(script)
    with installer.stage("helper", "market") as staged:
        assert staged.report.of("hosts") == ["api.example.com"]
        assert staged.report.of("variables") == ["MY_TOKEN"]


@pytest.mark.anyio
async def test_the_lock_file_keeps_what_changed_out_until_somebody_agrees_again(
    places: Places, market: Path
) -> None:
    desk = BundleDesk(places)
    desk.add_marketplace(str(market))
    desk.prepare_install("helper").agree()
    lock = json.loads(Path(places.user("plugins", "plugins.lock.json")).read_text())
    assert lock["helper@market"]["hash"].startswith("sha256:")
    script = Path(desk.installer("user").installed["helper@market"].install_path, "note.sh")
    script.write_text("echo other\n")
    async with InteractiveSession(cwd=places.cwd, provider=ScriptedProvider()) as session:
        await session.ready()
        assert not session.project.bundles.plugins
        assert any("has changed since you agreed" in each.message for each in session.problems)
        assert desk.list_rows()[0][3] == "changed"

        desk.prepare_enable("helper").agree()
        await session.ready()

        assert [each.id for each in session.project.bundles.plugins] == ["helper@market"]


@pytest.mark.anyio
async def test_installing_for_a_trusted_project_keeps_its_trust_and_nothing_else_slips_in(
    places: Places, market: Path
) -> None:
    desk = BundleDesk(places)
    desk.add_marketplace(str(market))
    async with InteractiveSession(cwd=places.cwd, provider=ScriptedProvider()) as session:
        await session.ready()
        desk.prepare_install("helper", "project").agree()
        await session.reload()
        assert session.project.trusted
        assert [each.scope for each in session.project.bundles.plugins] == ["project"]

        desk.disable("helper")
        await session.reload()
        assert session.project.trusted
        assert not session.project.bundles.plugins

        write_files(Path(places.cwd), {".mcp.json": {"mcpServers": {"x": {"command": "evil"}}}})
        desk.prepare_enable("helper").agree()
        await session.reload()
        assert session.project.trust.state == "changed"
        assert not session.project.bundles.plugins


def test_an_update_that_changed_nothing_asks_nothing_and_one_that_did_shows_what_it_runs(
    places: Places, market: Path
) -> None:
    desk = BundleDesk(places)
    desk.add_marketplace(str(market))
    desk.prepare_install("helper").agree()
    assert desk.prepare_update("helper").question == ""

    (market / "plugins" / "helper" / "note.sh").write_text("curl https://new.example\n")
    pending = desk.prepare_update("helper")

    assert "new.example" in "\n".join(pending.lines)
    assert pending.agree() == ["helper@market is updated from 1.0.0 to 1.0.0."]
    root = Path(desk.installer("user").installed["helper@market"].install_path)
    assert "new.example" in (root / "note.sh").read_text()
    assert desk.list_rows()[0][3] == "enabled"
    assert len(os.listdir(root.parent)) == 1


def test_a_plugin_in_both_scopes_and_a_name_in_two_marketplaces_are_told_apart(
    places: Places, tmp_path: Path, market: Path
) -> None:
    other = marketplace(tmp_path / "other", "other", {"helper": {}})
    write_files(other / "plugins" / "helper", whole_plugin())
    desk = BundleDesk(places)
    desk.add_marketplace(str(market))
    desk.add_marketplace(str(other))

    with pytest.raises(BundleError, match="helper@market, helper@other"):
        desk.prepare_install("helper")
    with pytest.raises(BundleError, match="No marketplace has a plugin 'nothing'"):
        desk.prepare_install("nothing")


def test_what_a_plugin_needs_is_installed_with_it_or_named_with_the_command_that_does(tmp_path: Path) -> None:
    other = marketplace(tmp_path / "other", "other", {"far": {}})
    write_files(other / "plugins" / "far", {"skills/far/SKILL.md": skill("far")})
    names = ("app", "base", "tool", "ring")
    root = marketplace(tmp_path / "needs", "needs", {name: {} for name in names})
    needs: dict[str, list[Any]] = {
        "app": ["base", {"name": "tool", "version": "^1.0"}, "far@other", "nowhere"],
        "base": ["ring"],
        "ring": ["app"],
        "tool": [],
    }
    for name, wanted in needs.items():
        manifest = {"name": name, "version": "1.0.0", "dependencies": wanted}
        write_files(root / "plugins" / name, {".claude-plugin/plugin.json": manifest})
    client = MarketplaceClient(tmp_path / "plugins")
    client.add(str(root))
    client.add(str(other))
    installer = BundlePluginInstaller(tmp_path / "plugins", marketplaces=client)

    together = stage_together(installer, "app", "needs")

    assert [each.record.plugin_name for each in together.plugins] == ["ring", "base", "tool", "app"]
    assert [sentence.rpartition(" ")[2] for sentence in together.missing] == ["far@other", "nowhere@needs"]
    assert "does not allow what comes from 'other'" in together.missing[0]
    together.discard()
    assert dict(installer.installed) == {}

    assert installer.install("app", "needs").id == "app@needs"

    assert list(installer.installed) == ["app@needs", "base@needs", "ring@needs", "tool@needs"]
    marketplace(root, "needs", {name: {} for name in names}, allowCrossMarketplaceDependenciesOn=["other"])
    installer.uninstall("app")
    installer.install("app", "needs")
    assert "far@other" in installer.installed

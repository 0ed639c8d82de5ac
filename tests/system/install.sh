#!/bin/sh
# What the system tests need besides pip packages of ours. Fails loudly where they cannot be had.
set -eu
# A client of the stream-json protocol, beside our own packages. From source: its wheel brings a program of 160 MB.
[ -d .venv/client/claude_agent_sdk ] || .venv/bin/python -m pip --disable-pip-version-check -q install \
  --target .venv/client --no-binary claude-agent-sdk claude-agent-sdk==0.2.182
# What drives a browser, and what judges whether a page can be used by everybody.
[ -d .venv/page/playwright ] || .venv/bin/python -m pip --disable-pip-version-check -q install \
  --target .venv/page playwright==1.65.2
# What makes requests of an OpenAPI document. Apart: every start of pytest beside it would take three seconds.
[ -d .venv/schemathesis/schemathesis ] || .venv/bin/python -m pip --disable-pip-version-check -q install \
  -c constraints.txt --target .venv/schemathesis schemathesis==4.32.5
# The reference servers of the Model Context Protocol; npm itself may come with the packages below.
install_servers() {
  [ -d .venv/mcp-servers/node_modules/@modelcontextprotocol/server-memory ] || npm install --silent --no-audit --no-fund \
    --prefix .venv/mcp-servers @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem \
    @modelcontextprotocol/server-memory > /dev/null
}
missing=""
for pair in tmux:tmux bwrap:bubblewrap rsync:rsync sponge:moreutils ed:ed ex:vim-tiny patch:patch \
  openssl:openssl sqlite3:sqlite3 unzip:unzip zip:zip make:make strace:strace zsh:zsh fish:fish npm:npm chromium:chromium; do
  command -v "${pair%%:*}" > /dev/null || missing="$missing ${pair##*:}"
done
[ -e /usr/share/i18n/charmaps/ISO-8859-1.gz ] || missing="$missing locales"
if [ -n "$missing" ]; then
  sudo=""
  [ "$(id -u)" -eq 0 ] || sudo="sudo"
  $sudo apt-get update -qq
  # shellcheck disable=SC2086 - a list of packages
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing > /dev/null
fi
[ -d .venv/axe/node_modules/axe-core ] || npm install --silent --prefix .venv/axe axe-core@4.14.0 > /dev/null
install_servers

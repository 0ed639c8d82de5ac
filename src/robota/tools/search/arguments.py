"""What Grep and Glob take: how much a search shows, and kinds of files by their usual names.

The words for kinds are ripgrep's.
"""

from __future__ import annotations

DEFAULT_LIMIT = 1_000
"""Results shown when the call names no limit."""
DEFAULT_TIMEOUT = 30.0
"""Seconds."""
MAX_PATTERN_CHARACTERS = 10_000
MAX_LINE_CHARACTERS = 500
MAX_CONTEXT_LINES = 1_000
MAX_OUTPUT_CHARACTERS = 256 * 1024


FILE_TYPES = {
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h,inl}",
    "cs": "*.cs",
    "css": "*.{css,scss,sass,less}",
    "dart": "*.dart",
    "docker": "*Dockerfile*",
    "elixir": "*.{ex,exs,eex,heex}",
    "erlang": "*.{erl,hrl}",
    "go": "*.go",
    "haskell": "*.{hs,lhs}",
    "html": "*.{htm,html}",
    "java": "*.java",
    "js": "*.{js,jsx,mjs,cjs,vue}",
    "json": "*.{json,jsonl,jsonc}",
    "kotlin": "*.{kt,kts}",
    "lua": "*.lua",
    "make": "{[Mm]akefile,GNUmakefile,*.mk,*.mak}",
    "markdown": "*.{md,markdown,mdx}",
    "md": "*.{md,markdown,mdx}",
    "php": "*.php",
    "py": "*.{py,pyi}",
    "r": "*.{R,r,Rmd}",
    "ruby": "{*.rb,*.gemspec,Gemfile,Rakefile}",
    "rust": "*.rs",
    "scala": "*.{scala,sbt}",
    "sh": "*.{sh,bash,zsh,ksh}",
    "sql": "*.sql",
    "svelte": "*.svelte",
    "swift": "*.swift",
    "tf": "*.{tf,tfvars}",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,mts,cts}",
    "txt": "*.txt",
    "vue": "*.vue",
    "xml": "*.{xml,xsd,xsl,svg}",
    "yaml": "*.{yaml,yml}",
    "zig": "*.zig",
}

"""Finding files and text: ripgrep where there is one, the same in plain Python where there is none.

A search (`query`) is a command line for a program that `engine` finds and runs; `results` reads its output.
The Python program is `worker`: it understands the part of ripgrep's command line that `engine` writes, gives
the same output, and can be ended the same way, whatever a pattern does to Python's `re`. `worker` and what it
imports (`gitignore`, `glob_pattern`, `rust_regex`, `text_search`) need nothing but the standard library.

What differs without ripgrep:

- `\\p{…}`, set operations and nested sets in `[…]`, `(?x)`, `(?U)`, `(?R)`, `(?-u)`, `(?-m)`, `\\A`, `\\z`
  and `\\b{…}` are refused; the message says that they need ripgrep.
- `\\w` and `\\b` take letters and digits, not combining marks; `(?i)` knows the dotted and dotless I.
- A pattern that makes Python's `re` try endless combinations ends with the time limit; ripgrep's never does.
- In `.gitignore` a set such as `[!a]` never matches a slash, and `?` is one byte, as git has it.
- A file above 64 MiB is left out of multi-line searches and of searches in UTF-16.
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
"""Kinds of files by their usual names, in ripgrep's words."""

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

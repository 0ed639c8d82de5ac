"""Sessions for people and for other machines: Markdown, one self-contained page, a shareable artifact."""

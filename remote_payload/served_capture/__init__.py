"""What a running SGLang feeds its drafter: fetched over HTTP, kept as rows, held against captured training states."""

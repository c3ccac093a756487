"""What a running SGLang feeds its drafter: fetched, kept, found among the known states."""

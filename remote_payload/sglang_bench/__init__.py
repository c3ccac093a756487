"""The served benchmark: a real SGLang, started or found, loaded, and every request kept. Stdlib alone, no torch."""

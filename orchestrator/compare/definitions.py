"""What a metric counts, in words. Two series are the same metric only if these words are the same, whoever measured.

So the words never change, not even where one is counted: `read_out` is for people.
"""

ACCEPT_LENGTH_POOLED = "1 + accepted drafts / verify steps, bonus token in, summed over requests"
ACCEPT_LENGTH_PER_VERIFY = "completion tokens / verify steps, summed over requests"
ACCEPT_LENGTH_WALK = "1 + accepted / verify steps of the serving walk, bonus token in, at most {steps} drafts a step"
ACCEPT_LENGTH_MEAN = "1 + leading hits, mean over response positions, at most {steps} drafts a step"
FIRST_STEP_ACCURACY = "share of response positions whose first draft is the target's greedy choice"
STEP_ACCEPTANCE = "of the verify steps that accepted {before} drafts, the share that accepted one more"
FIRST_STEP_ACCEPTANCE = "share of verify steps that accepted a draft"
CHAIN_ACCEPTANCE = "of the chains whose first {before} drafts hit, the share whose next one does"
ACCEPT_RATE = "accepted drafts / drafts that were verified ({drafts} a verify step)"
OUTPUT_THROUGHPUT = "output tokens / seconds from the first send to the last token"
TOTAL_THROUGHPUT = "prompt and output tokens / seconds from the first send to the last token"
REQUEST_THROUGHPUT = "answered requests / seconds from the first send to the last token"
OUTPUT_TOKENS = "output tokens / answered requests"
TTFT = "seconds from the send of a request to its first token, {summary} over requests"
TPOT = "seconds a token after the first chunk of a request, {summary} over requests"
E2E = "seconds from the send of a request to its last token, {summary} over requests"
USER_THROUGHPUT = "tokens a second of one request after its first chunk, {summary} over requests"
SPEEDUP = "output throughput / that of plain decoding in the same repeat"
CACHED_SHARE = "prompt tokens from the prefix cache / prompt tokens"
IDENTICAL_OUTPUTS = "share of prompts with the same output ids as plain decoding, greedy"


def read_out(definition: str) -> str:
    """A definition as people read it: of one draft, not of 1 drafts."""
    return definition.replace("first 1 drafts", "first draft").replace(" 1 drafts", " 1 draft")

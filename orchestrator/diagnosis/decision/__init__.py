"""From everything that is known of a drafter and its server to one decision: what is at fault, and what to do."""

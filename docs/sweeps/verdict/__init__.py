"""What verdicts.py is made of: statistics, results (reads a database), claims (what the paper
says), tables (Markdown)."""

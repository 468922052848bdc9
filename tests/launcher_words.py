"""What Paddle's launcher says, word for word."""

AT = "2026-11-19 23:29:33,693"
WATCHING = f"LAUNCH INFO {AT} Watching Pod: wnyodp, replicas 2, status running"
FAILED = f"LAUNCH ERROR {AT} Container failed !!!"
RANK = "Container rank 1 status failed cmd ['python', '-u', 't.py'] code 1 log log/workerlog.1"
DETAIL = f"LAUNCH INFO {AT} ------------------------- ERROR LOG DETAIL -------------------------"
EXIT = f"LAUNCH INFO {AT} Exit code 1"

"""Makes a request said on the command line some times with urllib3, in turn or together.

Each call's end is a line, {"status": 200}.
"""
import json
import sys
from concurrent.futures import ThreadPoolExecutor

settings, method, url, key, count, order = sys.argv[1:]

# as documented
from urllib3 import PoolManager
from urllib3.exceptions import MaxRetryError, ResponseError
from urllib3.util import Retry


class Patience(Retry):
    """Told to wait longer than a minute, it gives the 429 back."""

    def increment(self, method=None, url=None, response=None, error=None, _pool=None, _stacktrace=None):
        if response is not None and (self.get_retry_after(response) or 0) > 60:
            raise MaxRetryError(_pool, url, ResponseError("told to wait too long"))
        return super().increment(method, url, response, error, _pool, _stacktrace)


api = PoolManager(retries=Patience(total=5, backoff_factor=0.5, raise_on_status=False))
# end

pool = {"plain": PoolManager(), "bare": PoolManager(), "tuned": api}[settings]


def call(_):
    response = pool.request(method, url, headers={"X-API-Key": key})
    print(json.dumps({"status": response.status}) + "\n", end="", flush=True)


with ThreadPoolExecutor(1 if order == "in-turn" else int(count)) as workers:
    list(workers.map(call, range(int(count))))

"""A web application that serves the rows of another app's table: `python -m examples.balances`.

With brokers of your own: `uvicorn examples.balances:api`, beside `awoke run examples.balances:app`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient

import awoke
from awoke.testing import EmbeddedCluster, running


class Balance(msgspec.Struct):
    """The row of an account."""

    cents: int = 0
    payments: int = 0


app = awoke.App("bank")
balances = app.table("balances", key=str, value=Balance)


@app.on("payments", key=str, value=int, output="receipts", tables=[balances])
def pay(message: awoke.Message[int, str]) -> Balance:
    """Adds a payment to the account that is its key."""
    before = balances.get(message.key, Balance())
    after = Balance(before.cents + message.value, before.payments + 1)
    balances[message.key] = after
    return after


@asynccontextmanager
async def lifespan(api: FastAPI) -> AsyncIterator[None]:
    """Opens the table with the web application. Its settings come from AWOKE_BOOTSTRAP_SERVERS and the like."""
    async with awoke.Table("bank", "balances", key=str, value=Balance, settings=app.settings) as table:
        api.state.balances = table
        yield


api = FastAPI(lifespan=lifespan)


@api.get("/balances/{account}")
async def balance(account: str, request: Request) -> dict[str, int]:
    """Asks the process that has the account."""
    found = await request.app.state.balances.aget(account)
    if found is None:
        raise HTTPException(404, f"there is no account {account}")
    return {"cents": found.cents, "payments": found.payments}


@api.exception_handler(awoke.RpcError)
async def answer(request: Request, error: Exception) -> JSONResponse:
    """Makes 503 of a partition that is restored, 504 of no answer in time."""
    return JSONResponse({"error": str(error)}, awoke.rpc.errors.http_status(error))


def main() -> None:
    """Serve on brokers inside the process, and make requests."""
    with EmbeddedCluster() as cluster:
        for topic in ("payments", "receipts"):
            cluster.create_topic(topic, partitions=4)
        with running(app, bootstrap_servers=cluster.bootstrap_servers):
            for cents in (500, 3_700):
                app.producer.produce("payments", cents, key="ann").wait()
            with awoke.Reader("receipts", bootstrap_servers=cluster.bootstrap_servers) as receipts:
                receipt = iter(receipts)
                for _ in range(2):
                    next(receipt)
            with TestClient(api) as client:
                print(f"ann has {client.get('/balances/ann').json()}")
                missing = client.get("/balances/bob")
                print(f"bob: {missing.status_code} {missing.json()['detail']}")


if __name__ == "__main__":
    main()

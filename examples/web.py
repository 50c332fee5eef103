"""A web application that sends orders and calls a service over Kafka: `python -m examples.web`.

With brokers of your own: `uvicorn examples.web:api`, beside `awoke run examples.service:app`.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI
from fastapi.testclient import TestClient

import awoke
from awoke.fastapi import CallsMiddleware, Producer, caller, lifespan
from awoke.testing import EmbeddedCluster, running
from examples import service

app = awoke.App("web")
api = FastAPI(lifespan=lifespan(app, callers=["shop"]))
api.add_middleware(CallsMiddleware)

Shop = Annotated[awoke.rpc.Caller, caller("shop")]


@api.post("/orders/{sku}")
async def order(sku: str, producer: Producer) -> int:
    """Sends an order; returns its offset."""
    delivery = await producer.produce("orders", {"sku": sku}, key=sku)
    return delivery.offset


@api.get("/prices/{sku}")
async def price(sku: str, shop: Shop) -> float:
    """Asks the service; a thing that it does not know is a 404."""
    quoted = await shop.acall("quote", sku=sku, quantity=1, returns=service.Money)
    return float(quoted.amount)


def main() -> None:
    """Serve on brokers inside the process, and make requests."""
    with EmbeddedCluster() as cluster, running(service.app, bootstrap_servers=cluster.bootstrap_servers):
        cluster.create_topic("orders")
        app.use(bootstrap_servers=cluster.bootstrap_servers)
        with TestClient(api) as client:
            print(f"an order at offset {client.post('/orders/A1').json()}")
            print(f"A1 costs {client.get('/prices/A1').json():.2f}")
            missing = client.get("/prices/C3")
            print(f"C3: {missing.status_code} {missing.json()}")


if __name__ == "__main__":
    main()

"""Classes of protobuf messages for tests, made at run time: no compiler is needed.

package shop;
import "money.proto";
message Line { string sku = 1; }
message Order {
  message Note { string text = 1; }
  int64 id = 1; repeated Line lines = 2; Note note = 3; money.Amount price = 4;
}
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto


def _field(name: str, number: int, kind: Any, type_name: str | None = None, label: Any = FIELD.LABEL_OPTIONAL) -> Any:
    return FIELD(name=name, number=number, type=kind, type_name=type_name, label=label)


def _files() -> list[Any]:
    money = descriptor_pb2.FileDescriptorProto(name="money.proto", package="money", syntax="proto3")
    amount = money.message_type.add(name="Amount")
    amount.field.append(_field("cents", 1, FIELD.TYPE_INT64))
    shop = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=["money.proto"]
    )
    line = shop.message_type.add(name="Line")
    line.field.append(_field("sku", 1, FIELD.TYPE_STRING))
    order = shop.message_type.add(name="Order")
    note = order.nested_type.add(name="Note")
    note.field.append(_field("text", 1, FIELD.TYPE_STRING))
    order.field.append(_field("id", 1, FIELD.TYPE_INT64))
    order.field.append(_field("lines", 2, FIELD.TYPE_MESSAGE, ".shop.Line", FIELD.LABEL_REPEATED))
    order.field.append(_field("note", 3, FIELD.TYPE_MESSAGE, ".shop.Order.Note"))
    order.field.append(_field("price", 4, FIELD.TYPE_MESSAGE, ".money.Amount"))
    return [money, shop]


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    for file in _files():
        pool.Add(file)
    names = ("money.Amount", "shop.Line", "shop.Order", "shop.Order.Note")
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names}


CLASSES = _classes()
Amount: Any = CLASSES["money.Amount"]
Line: Any = CLASSES["shop.Line"]
Order: Any = CLASSES["shop.Order"]
Note: Any = CLASSES["shop.Order.Note"]

SHOP_TEXT = """
syntax = "proto3";
package shop; // message Wrong {}
import "money.proto";
message Line { string sku = 1; }
/* message Wrong {} */
message Order {
  enum State { OPEN = 0; }
  message Note { string text = 1 [deprecated = true]; }
  oneof of { int64 id = 1; }
  repeated Line lines = 2; Note note = 3; money.Amount price = 4;
}
"""

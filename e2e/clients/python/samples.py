"""What several scripts send: models, tools, images, a document."""

import base64
import struct
import zlib

THINKER = "anthropic/claude-sonnet-5-5"  # thinks unless told otherwise, refuses to be forced to call a tool
PLAIN = "anthropic/claude-opus-4-8"  # does not think by itself
FORCED = "anthropic/claude-haiku-5-5"  # can be forced to call a tool


def function(name, properties, description="", required=None, **extra):
    """A function tool in OpenAI's shape."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters, **extra}}


WEATHER = function("get_weather", {"city": {"type": "string", "description": "A city"}}, "Current weather")
TIME = function("get_time", {"zone": {"type": "string"}, "seconds": {"type": "boolean"}}, "The time in a zone", strict=True)
# Names of three lengths: the stand-in streams calls without arguments in three ways.
TICKETS = [{"type": "function", "function": {"name": name}} for name in ("tickets", "tickets_", "tickets__")]


def png(width, height=1):
    """A black PNG image."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\0" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"


def data_url(kind, data):
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def image_part(width):
    return {"type": "image_url", "image_url": {"url": data_url("image/png", png(width)), "detail": "high"}}


def file_part():
    return {"type": "file", "file": {"filename": "a.pdf", "file_data": data_url("application/pdf", PDF)}}

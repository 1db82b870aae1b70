// What several scripts send: models, tools, images, a document.

import { crc32 as crc, deflateSync } from "node:zlib";

export const THINKER = "anthropic/claude-sonnet-5-5"; // thinks unless told otherwise, refuses to be forced to call a tool
export const PLAIN = "anthropic/claude-opus-4-8"; // does not think by itself
export const FORCED = "anthropic/claude-haiku-5-5"; // can be forced to call a tool

export function functionTool(name, properties, extra = {}) {
  const parameters = { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
  return { type: "function", function: { name, parameters, ...extra } };
}

export const WEATHER = functionTool("get_weather", { city: { type: "string", description: "A city" } });
export const TIME = functionTool("get_time", { zone: { type: "string" } }, { strict: true });
// Names of three lengths: the stand-in streams calls without arguments in three ways.
export const TICKETS = ["tickets", "tickets_", "tickets__"].map((name) => ({ type: "function", function: { name } }));

// png makes a black PNG image of one row.
export function png(width) {
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const frame = Buffer.alloc(8);
    frame.writeUInt32BE(data.length, 0);
    frame.writeUInt32BE(crc(body), 4);
    return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(1, 4);
  header[8] = 8;
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header), chunk("IDAT", deflateSync(Buffer.alloc(width + 1))), chunk("IEND", Buffer.alloc(0)),
  ]);
}


export const PDF = Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n");

export const dataURL = (kind, data) => `data:${kind};base64,${data.toString("base64")}`;

export const imagePart = (width) => ({ type: "image_url", image_url: { url: dataURL("image/png", png(width)), detail: "high" } });

export const filePart = () => ({ type: "file", file: { filename: "a.pdf", file_data: dataURL("application/pdf", PDF) } });

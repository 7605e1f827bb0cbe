/** The binary framing of AWS's streams: lengths, headers and payload, with two checksums. */
import { crc32 } from 'node:zlib'

/** How the frames of an answer travel, where they are not server-sent events. */
export interface Framing {
  readonly contentType: string
  /** A frame, given as a server-sent event. */
  encode(text: string): Buffer
}

/** Each event becomes a message of its name. */
export const EVENT_STREAM: Framing = {
  contentType: 'application/vnd.amazon.eventstream',
  encode: text => {
    const { name, data } = readEvent(text)
    return encodeMessage(name, data)
  },
}

/** Each event is carried as bytes, whatever its name; what AWS itself says has its own. */
export const CHUNK_STREAM: Framing = {
  ...EVENT_STREAM,
  encode: text => {
    const { name, data } = readEvent(text)
    if (name.endsWith('Exception')) return encodeMessage(name, data)
    return encodeMessage('chunk', JSON.stringify({ bytes: Buffer.from(data).toString('base64') }))
  },
}

function readEvent(text: string): { name: string; data: string } {
  const [, name = ''] = /^event: (.*)$/m.exec(text) ?? []
  const [, data = ''] = /^data: (.*)$/m.exec(text) ?? []
  return { name, data }
}

function encodeMessage(name: string, data: string): Buffer {
  const isException = name.endsWith('Exception')
  const headers = Buffer.concat([
    encodeHeader(isException ? ':exception-type' : ':event-type', name),
    encodeHeader(':content-type', 'application/json'),
    encodeHeader(':message-type', isException ? 'exception' : 'event'),
  ])
  const payload = Buffer.from(data)
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(headers.length + payload.length + 16, 0)
  prelude.writeUInt32BE(headers.length, 4)
  const message = Buffer.concat([prelude, checksum(prelude), headers, payload])
  return Buffer.concat([message, checksum(message)])
}

const TEXT_HEADER = 7

function encodeHeader(name: string, value: string): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(Buffer.byteLength(value), 0)
  return Buffer.concat([
    Buffer.from([name.length]),
    Buffer.from(name),
    Buffer.from([TEXT_HEADER]),
    length,
    Buffer.from(value),
  ])
}

function checksum(bytes: Buffer): Buffer {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(bytes) >>> 0, 0)
  return sum
}

import { AgentFrame, LIMITS } from '@svc/contract';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { frameReader, parseUntrusted } from './frame-reader.ts';

/**
 * A validated message that the guest sends again until it is acknowledged. `frame` is undefined when it is not an
 * agent's frame: the message is acknowledged, the frame is dropped. `bytes`: the length of its line.
 */
export type NumberedMessage =
  | {
      readonly type: 'frame';
      readonly n: number;
      readonly frame: AgentFrame | undefined;
      /** A picture in PNG or JPEG that follows the frame. */
      readonly image?: Buffer;
      readonly bytes: number;
    }
  | {
      readonly type: 'state';
      readonly n: number;
      readonly conversation: string;
      readonly files: boolean;
    }
  | { readonly type: 'exited'; readonly n: number; readonly exitCode: number };

/** The answer to a request for pictures of the display. Nothing about `update` has been checked. */
export interface CapturedMessage {
  readonly type: 'captured';
  readonly id: number;
  /** Base64. */
  readonly update: string;
}

/** A validated message of the guest. */
export type ValidGuestMessage =
  | NumberedMessage
  | { readonly type: 'configured' | 'rehearsed' }
  | { readonly type: 'attached' | 'received'; readonly c: number }
  | CapturedMessage;

const N = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const C = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** Base64 needs four characters for three bytes. */
const Image = Type.String({ maxLength: Math.ceil(LIMITS.screenshotBytes / 3) * 4 });

const frameMessage = Compile(
  Type.Object({
    type: Type.Literal('frame'),
    n: N,
    frame: Type.Unknown(),
    image: Type.Optional(Image),
  }),
);
const otherMessage = Compile(
  Type.Union([
    Type.Object({ type: Type.Enum(['configured', 'rehearsed']) }),
    Type.Object({ type: Type.Enum(['attached', 'received']), c: C }),
    Type.Object({ type: Type.Literal('captured'), id: N, update: Type.String() }),
    Type.Object({
      type: Type.Literal('state'),
      n: N,
      conversation: Type.String(),
      files: Type.Boolean(),
    }),
    Type.Object({
      type: Type.Literal('exited'),
      n: N,
      exitCode: Type.Integer({ minimum: -255, maximum: 255 }),
    }),
  ]),
);
const readAgentFrame = frameReader<AgentFrame>(AgentFrame);

/** Parses a line of the guest; undefined when it is not a message of the protocol. */
export function readGuestMessage(line: Buffer): ValidGuestMessage | undefined {
  const value = parseUntrusted(line);
  if (frameMessage.Check(value)) {
    const frame = readAgentFrame(value.frame);
    const image = frame?.type === 'tool_result' ? readImage(value.image) : undefined;
    const picture = image === undefined ? {} : { image };
    return { type: 'frame', n: value.n, frame, ...picture, bytes: line.length };
  }
  return otherMessage.Check(value) ? (value as ValidGuestMessage) : undefined;
}

const BEGINNINGS = [Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from('ffd8ff', 'hex')];

/** The bytes of a PNG or JPEG; undefined for anything else, which clients would take for one. */
function readImage(base64: string | undefined): Buffer | undefined {
  if (base64 === undefined) return undefined;
  const image = Buffer.from(base64, 'base64');
  const isImage = BEGINNINGS.some((bytes) => image.subarray(0, bytes.length).equals(bytes));
  return isImage ? image : undefined;
}

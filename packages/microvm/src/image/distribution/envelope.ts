import { type KeyObject, sign, verify } from 'node:crypto';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { ImageRefusedError } from './image-refused.ts';
import { parsePublicKey, publicKeyText } from './signing-keys.ts';

/**
 * Signed content as a DSSE envelope, https://github.com/secure-systems-lab/dsse/blob/master/envelope.md: a signature covers
 * the type of the content and its exact bytes, so that nothing is parsed before it is verified.
 */
const Envelope = Type.Object({
  payloadType: Type.String({ maxLength: 200 }),
  payload: Type.String(),
  signatures: Type.Array(
    Type.Object({ keyid: Type.Optional(Type.String()), sig: Type.String({ maxLength: 100 }) }),
    { minItems: 1, maxItems: 8 },
  ),
});
const envelopes = Compile(Envelope);

/** Signs content of a type. */
export function sealEnvelope(type: string, payload: Buffer, key: KeyObject): Buffer {
  const sig = sign(null, signedBytes(type, payload), key).toString('base64');
  const envelope = {
    payloadType: type,
    payload: payload.toString('base64'),
    signatures: [{ keyid: publicKeyText(key), sig }],
  };
  return Buffer.from(`${JSON.stringify(envelope)}\n`);
}

/** The content of an envelope that one of the trusted keys signed. @throws ImageRefusedError */
export function openEnvelope(
  envelope: Buffer,
  type: string,
  trustedKeys: readonly string[],
): Buffer {
  const { payloadType, payload: text, signatures } = parseEnvelope(envelope);
  if (payloadType !== type) {
    throw new ImageRefusedError('untrusted', 'the manifest is of an unknown type');
  }
  const payload = Buffer.from(text, 'base64');
  const signed = signedBytes(type, payload);
  const keys = trustedKeys.map(parsePublicKey);
  const isTrusted = signatures.some(({ sig }) => {
    const signature = Buffer.from(sig, 'base64');
    return keys.some((key) => verify(null, signed, key, signature));
  });
  if (!isTrusted) {
    throw new ImageRefusedError(
      'untrusted',
      'the manifest has no valid signature of a trusted key',
    );
  }
  return payload;
}

/** The content of an envelope from a place that only this machine writes to. @throws ImageRefusedError */
export function payloadOf(envelope: Buffer): Buffer {
  return Buffer.from(parseEnvelope(envelope).payload, 'base64');
}

function parseEnvelope(envelope: Buffer) {
  let value: unknown;
  try {
    value = JSON.parse(envelope.toString());
  } catch (cause) {
    throw new ImageRefusedError('untrusted', 'the manifest is no JSON', { cause });
  }
  if (!envelopes.Check(value)) {
    throw new ImageRefusedError('untrusted', 'the manifest is no signed envelope');
  }
  return value;
}

/** DSSE's pre-authentication encoding. */
function signedBytes(type: string, payload: Buffer): Buffer {
  const head = `DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `;
  return Buffer.concat([Buffer.from(head), payload]);
}

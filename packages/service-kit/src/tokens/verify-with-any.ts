import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from 'jose';

/** Verifies a token that one of these symmetric keys has signed. @throws the error of jose for the last key that was tried */
export async function verifyWithAny(
  token: string,
  [key, ...others]: readonly [Uint8Array, ...Uint8Array[]],
  options: JWTVerifyOptions,
): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, key, options)).payload;
  } catch (error) {
    const [next, ...rest] = others;
    const isOfAnother = error instanceof errors.JWSSignatureVerificationFailed;
    if (!isOfAnother || next === undefined) throw error;
    return verifyWithAny(token, [next, ...rest], options);
  }
}

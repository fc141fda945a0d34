export { type Enrolment, mintEnrolmentToken, verifyEnrolmentToken } from './enrolment-tokens.ts';
export { createHopTokenVerifier, type HopTokenVerifier, mintHopToken } from './hop-tokens.ts';
export {
  createTokenMinter,
  createTokenVerifier,
  type TokenMinter,
  type TokenVerifier,
} from './internal-tokens.ts';
export {
  type ComponentIdentity,
  deriveControlPlaneKey,
  formatKeyPair,
  generateKeyPair,
  type KeyPair,
  keyIdOf,
  parseKeyPair,
} from './key-pair.ts';
export { type SessionIdentity, SessionTokens, sessionTokenKey } from './session-tokens.ts';
export { findAmong, type KeyFinder } from './signed-tokens.ts';
export { verifyWithAny } from './verify-with-any.ts';

export {
  createTokenMinter,
  createTokenVerifier,
  type TokenMinter,
  type TokenVerifier,
} from './internal-tokens.ts';
export {
  type SessionIdentity,
  type SessionTokenAudience,
  SessionTokens,
} from './session-tokens.ts';

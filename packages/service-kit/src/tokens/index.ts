export {
  createTokenMinter,
  createTokenVerifier,
  type TokenMinter,
  type TokenVerifier,
} from './internal-tokens.ts';

/** `/v1/tenants/me/secrets`: named sets of secret values. Values can be written but never read. */

import { type Static, Type } from 'typebox';
import { LIMITS } from '../limits.ts';
import { failsWith, mapOf, Timestamp } from '../schema.ts';

export const BUNDLE_NAME_PATTERN = '^[a-z0-9][a-z0-9-]{0,62}$';
const BUNDLE_NAME = new RegExp(BUNDLE_NAME_PATTERN);

const BundleName = Type.String({ pattern: BUNDLE_NAME_PATTERN, examples: ['openai-prod'] });
const KeyNames = Type.Array(Type.String(), { description: 'Names only, sorted.' });
const lastRotatedAt = { ...Timestamp, description: 'Absent before the first rotation.' };

/** Checks form only; `bundleProblem` checks the limits, each of which has its own code. */
const Values = mapOf<string>(
  { type: 'string' },
  {
    description: `At most ${LIMITS.secretKeysPerBundle} values of at most ${LIMITS.secretValueBytes} bytes of UTF-8, by environment variable name. Names that belong to the service are refused. \`LLM_API_KEY\` has at most ${LIMITS.llmKeyChars} characters that an HTTP header can contain.`,
    examples: [{ LLM_API_KEY: 'sk-…' }],
  },
);

export const CreateBundleRequest = Type.Object(
  { name: { ...BundleName, ...failsWith('bundle_name_invalid') }, values: Values },
  { title: 'CreateSecretBundleRequest' },
);
export type CreateBundleRequest = Static<typeof CreateBundleRequest>;

export const RotateBundleRequest = Type.Object(
  { values: Values },
  { title: 'RotateSecretBundleRequest' },
);
export type RotateBundleRequest = Static<typeof RotateBundleRequest>;

/** Accepts any text: an unknown name is 404, even if it is malformed. */
export const BundleParams = Type.Object({
  name: Type.String({ description: 'Name of a bundle.', examples: ['openai-prod'] }),
});

export const BundleRecord = Type.Object(
  {
    name: BundleName,
    key_names: KeyNames,
    created_at: Timestamp,
    last_rotated_at: Type.Optional(lastRotatedAt),
  },
  { title: 'SecretBundle' },
);
export type BundleRecord = Static<typeof BundleRecord>;

export const CreateBundleResponse = Type.Object({
  name: BundleName,
  key_names: KeyNames,
  created_at: Timestamp,
});
export type CreateBundleResponse = Static<typeof CreateBundleResponse>;

export const ListBundlesResponse = Type.Object({ bundles: Type.Array(BundleRecord) });
export type ListBundlesResponse = Static<typeof ListBundlesResponse>;

export const RotateBundleResponse = Type.Object({
  name: BundleName,
  key_names: KeyNames,
  last_rotated_at: Timestamp,
});
export type RotateBundleResponse = Static<typeof RotateBundleResponse>;

export const DeleteBundleResponse = Type.Object({ status: Type.Literal('deleted') });
export type DeleteBundleResponse = Static<typeof DeleteBundleResponse>;

/** Whether `name` is a valid bundle name. */
export function isBundleName(name: string): boolean {
  return BUNDLE_NAME.test(name);
}

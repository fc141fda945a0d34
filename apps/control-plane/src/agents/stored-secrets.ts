import { type AgentSecrets, LLM_API_KEY_KEY, LLM_BASE_URL_KEY, LLM_MODEL_KEY } from '@svc/contract';

type Values = Readonly<Record<string, string>>;

/** Stored secrets of a session's agent. They allow a bundle to be deleted while the session runs. */
export interface SessionSecrets {
  readonly kind: 'session';
  readonly tenantId: string;
  /** Values by bundle, in the order of the session's `secrets`. */
  readonly bundles: readonly (readonly [name: string, values: Values])[];
  /** Base URL of the request, which takes precedence over that of a bundle. */
  readonly baseUrl?: string | undefined;
}

/** Stored secrets of a one-shot agent. */
export interface OneShotSecrets {
  readonly kind: 'one_shot';
  readonly tenantId: string;
  readonly llmKey: string;
  readonly baseUrl?: string | undefined;
  readonly persistenceAuthHeader?: string | undefined;
}

export type StoredSecrets = SessionSecrets | OneShotSecrets;

const LLM_KEYS: readonly string[] = [LLM_API_KEY_KEY, LLM_BASE_URL_KEY, LLM_MODEL_KEY];

/** Merges the values of bundles. If a rotation made two bundles contain the same key, the later bundle wins. */
export function mergeBundles(bundles: SessionSecrets['bundles']): Map<string, string> {
  return new Map(bundles.flatMap(([, values]) => Object.entries(values)));
}

/** The merged values of bundles that are environment variables of the agent's processes. */
export function environmentIn(values: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries([...values].filter(([key]) => !LLM_KEYS.includes(key)));
}

/** The secrets in the form that workers get. */
export function agentSecretsOf(stored: StoredSecrets): AgentSecrets {
  if (stored.kind === 'one_shot') {
    const { llmKey, baseUrl, persistenceAuthHeader } = stored;
    return {
      llm: { api_key: llmKey, ...(baseUrl === undefined ? {} : { base_url: baseUrl }) },
      env: {},
      ...(persistenceAuthHeader === undefined
        ? {}
        : { persistence_auth_header: persistenceAuthHeader }),
    };
  }
  const values = mergeBundles(stored.bundles);
  const baseUrl = stored.baseUrl ?? values.get(LLM_BASE_URL_KEY);
  const model = values.get(LLM_MODEL_KEY);
  return {
    llm: {
      // A rotation may have removed the key. The vendor then refuses, and the session reports that.
      api_key: values.get(LLM_API_KEY_KEY) ?? '',
      ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
      ...(model === undefined ? {} : { model }),
    },
    env: environmentIn(values),
  };
}

/** What an agent may ask of its model endpoint: answers of models, and which models there are. */

import { LLM_VENDORS, type LlmDialect } from '@svc/contract';

/** A name of a model as one segment of a path; nothing that leads out of it. */
const MODEL = '[A-Za-z0-9][A-Za-z0-9._:@~-]{0,127}';
/** Google's names hold no colon: behind it stands what is to be done with the model. */
const GOOGLE_MODEL = MODEL.replace(':', '');

type Endpoints = Readonly<Record<'GET' | 'POST', RegExp>>;

const OPENAI: Endpoints = {
  POST: /^\/(chat\/completions|responses)$/,
  GET: new RegExp(`^/models(/${MODEL})?$`),
};
const ENDPOINTS: Readonly<Record<LlmDialect, Endpoints>> = {
  anthropic: {
    POST: /^\/v1\/messages(\/count_tokens)?$/,
    GET: new RegExp(`^/v1/models(/${MODEL})?$`),
  },
  openai: OPENAI,
  deepseek: OPENAI,
  google: {
    POST: new RegExp(
      `^/models/${GOOGLE_MODEL}:(generateContent|streamGenerateContent|countTokens)$`,
    ),
    GET: new RegExp(`^/models(/${GOOGLE_MODEL})?$`),
  },
};
/** Values of the query that are passed on. Others could choose another form of answer, in which nothing is counted. */
const QUERY: Readonly<Record<string, RegExp>> = {
  beta: /^true$/,
  alt: /^(sse|json)$/,
  client_version: /^[\w.+-]{1,64}$/,
  limit: /^\d{1,4}$/,
  after_id: /^[\w.:@~-]{1,128}$/,
  before_id: /^[\w.:@~-]{1,128}$/,
  pageSize: /^\d{1,4}$/,
  pageToken: /^[\w.=~-]{1,512}$/,
};

/** Where a request of an agent goes. */
export interface Target {
  readonly method: 'GET' | 'POST';
  readonly dialect: LlmDialect;
  /** Below the endpoint's base URL, with its slash. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The dialect that a request target begins with. */
export function dialectOfPath(url: string): LlmDialect | undefined {
  const [, segment] = /^\/([a-z]+)(?=[/?]|$)/.exec(url) ?? [];
  return LLM_VENDORS.find((dialect) => dialect === segment);
}

/** Claude Code asks first whether anybody is there; that is answered here. */
export function isKnock(method: string | undefined, url: string): boolean {
  return method === 'HEAD' && /^\/[a-z]*\/?(\?|$)/.test(url);
}

/** What is asked for; undefined when it is nothing that an agent may ask. Nothing is decoded: encoded paths are none. */
export function targetOf(method: string | undefined, url: string): Target | undefined {
  const dialect = dialectOfPath(url);
  if (dialect === undefined || (method !== 'GET' && method !== 'POST')) return undefined;
  const [whole = '', query = ''] = url.split('?', 2);
  const path = whole.slice(dialect.length + 1);
  if (!ENDPOINTS[dialect][method].test(path)) return undefined;
  const allowed = [...new URLSearchParams(query)].filter(([name, value]) => {
    const form = Object.hasOwn(QUERY, name) ? QUERY[name] : undefined;
    return form?.test(value) === true;
  });
  return { method, dialect, path, query: new URLSearchParams(allowed) };
}

/** Joins what is asked for to a base URL, whose own query stays. */
export function upstreamUrl(baseUrl: string, { path, query }: Target): string {
  const url = new URL(baseUrl);
  url.hash = '';
  url.pathname = url.pathname.replace(/\/+$/, '') + path;
  for (const [name, value] of query) {
    if (!url.searchParams.has(name)) url.searchParams.append(name, value);
  }
  return url.href;
}

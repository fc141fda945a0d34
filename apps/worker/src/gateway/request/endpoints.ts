/** The requests that an agent may send to its model endpoint: model calls, and lists of models. */

import { LLM_VENDORS, type LlmDialect } from '@svc/contract';

/** A model's name as a single path segment, without `..`. */
const MODEL = '[A-Za-z0-9][A-Za-z0-9._:@~-]{0,127}';
/** Google's names contain no colon, which separates the method from the model. */
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
/** Query parameters that are forwarded. Others could select a response format in which tokens are not counted. */
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

/** The target of an agent's request. */
export interface Target {
  readonly method: 'GET' | 'POST';
  readonly dialect: LlmDialect;
  /** Relative to the endpoint's base URL, with a leading slash. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The route in the first segment of the path, see `llmRoute`. */
export function routeOfPath(url: string): string | undefined {
  return /^\/([a-z]+(?:\.[0-9a-f]{8})?)(?=[/?]|$)/.exec(url)?.[1];
}

/** The dialect of a route. */
export function dialectOfRoute(route: string | undefined): LlmDialect | undefined {
  const [name] = route?.split('.') ?? [];
  return LLM_VENDORS.find((dialect) => dialect === name);
}

/** Whether this is Claude Code's initial check that its endpoint exists, which the gateway answers itself. */
export function isConnectivityCheck(method: string | undefined, url: string): boolean {
  return method === 'HEAD' && /^\/[a-z]*(\.[0-9a-f]{8})?\/?(\?|$)/.test(url);
}

/** The target of a request; undefined if it is not allowed. Nothing is decoded, so that encoded paths never match. */
export function targetOf(method: string | undefined, url: string): Target | undefined {
  const route = routeOfPath(url);
  const dialect = dialectOfRoute(route);
  if (route === undefined || dialect === undefined || (method !== 'GET' && method !== 'POST'))
    return undefined;
  const [whole = '', query = ''] = url.split('?', 2);
  const path = whole.slice(route.length + 1);
  if (!ENDPOINTS[dialect][method].test(path)) return undefined;
  const allowed = [...new URLSearchParams(query)].filter(([name, value]) => {
    const form = Object.hasOwn(QUERY, name) ? QUERY[name] : undefined;
    return form?.test(value) === true;
  });
  return { method, dialect, path, query: new URLSearchParams(allowed) };
}

/** Appends the target to a base URL, and keeps the query of the latter. */
export function upstreamUrl(baseUrl: string, { path, query }: Target): string {
  const url = new URL(baseUrl);
  url.hash = '';
  url.pathname = url.pathname.replace(/\/+$/, '') + path;
  for (const [name, value] of query) {
    if (!url.searchParams.has(name)) url.searchParams.append(name, value);
  }
  return url.href;
}

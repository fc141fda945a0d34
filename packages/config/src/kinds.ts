/** The kinds of values of variables. */

import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { MODEL_PATTERN, TEMPLATES, type Template } from '@svc/contract';
import { Secret } from '@svc/service-kit/secret';
import { Type } from 'typebox';
import type { Kind } from './kind.ts';

const Defined = Type.Any();

export const path: Kind<string> = {
  expects: 'a path',
  schema: Type.String({ minLength: 1, pattern: '^[^\\u0000]+$' }),
  convert: (text) => resolve(text),
};

export const plainText: Kind<string> = {
  expects: 'text of at most 255 characters in one line',
  schema: Type.String({ minLength: 1, maxLength: 255, pattern: '^[^\\r\\n]+$' }),
  convert: (text) => text,
};

/** A name that is safe in paths, headers and certificates. */
export const identifier: Kind<string> = {
  expects: '1 to 128 letters, digits, dots, dashes or underscores',
  schema: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$' }),
  convert: (text) => text,
};

/** Name of a model. */
export const modelName: Kind<string> = {
  expects: 'a model name of at most 128 letters, digits and ._:/@-',
  schema: Type.String({ pattern: MODEL_PATTERN }),
  convert: (text) => text,
};

/** A URL without path, query or credentials, kept without a trailing slash. */
export function origin(...protocols: string[]): Kind<string> {
  const forms = protocols.map((protocol) => `${protocol}//host[:port]`).join(' or ');
  return {
    expects: `a URL of the form ${forms}`,
    schema: Type.String(),
    convert(text) {
      const url = parsePlainUrl(text, protocols);
      const isOrigin = url?.pathname === '/' || url?.pathname === '';
      return url !== undefined && isOrigin ? `${url.protocol}//${url.host}` : undefined;
    },
  };
}

/** A URL without query or credentials, to which paths are added, kept without a trailing slash. */
export function baseUrl(...protocols: string[]): Kind<string> {
  const forms = protocols.map((protocol) => `${protocol}//host[:port][/path]`).join(' or ');
  return {
    expects: `a URL of the form ${forms}`,
    schema: Type.String(),
    convert(text) {
      const url = parsePlainUrl(text, protocols);
      if (url === undefined) return undefined;
      return `${url.protocol}//${url.host}${url.pathname}`.replace(/\/+$/, '');
    },
  };
}

/** Comma-separated `name=value` of HTTP headers that carry credentials. */
export const secretHeaders: Kind<Readonly<Record<string, Secret>>> = {
  expects: 'a comma-separated list of name=value, as in authorization=Bearer x',
  schema: Defined,
  secret: true,
  convert(text) {
    const entries = everyItem(text, parseHeader);
    return entries === undefined ? undefined : Object.fromEntries(entries);
  },
};

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

/** An origin that receives secrets: HTTPS, or HTTP if nothing leaves this machine. */
export const encryptedOrigin: Kind<string> = {
  expects: 'a URL of the form https://host[:port], or http://localhost[:port] on the same machine',
  schema: Type.String(),
  convert(text) {
    const converted = origin('https:', 'http:').convert(text);
    if (converted === undefined) return undefined;
    const { protocol, hostname } = new URL(converted);
    return protocol === 'https:' || LOOPBACK_HOSTS.includes(hostname) ? converted : undefined;
  },
};

/** A URL that may contain a password and is therefore a secret. */
export function secretUrl(...protocols: string[]): Kind<Secret> {
  const schemes = protocols.map((protocol) => `${protocol}//`).join(' or ');
  return {
    expects: `a URL that starts with ${schemes}`,
    schema: Defined,
    secret: true,
    convert: (text) => (parseUrl(text, protocols) === undefined ? undefined : new Secret(text)),
  };
}

/** A secret of at least `minimum` characters. */
export function secretText(minimum: number): Kind<Secret> {
  return {
    expects: minimum === 1 ? 'text' : `at least ${minimum} characters`,
    schema: Defined,
    secret: true,
    convert: (text) => (text.length < minimum ? undefined : new Secret(text)),
  };
}

/** A 256-bit key in base64 or hex. */
export const secretKey: Kind<Secret> = {
  expects: '32 bytes in base64 or hex, as `openssl rand -base64 32` prints them',
  schema: Defined,
  secret: true,
  convert(text) {
    if (/^[0-9a-fA-F]{64}$/.test(text))
      return new Secret(Buffer.from(text, 'hex').toString('base64'));
    if (!/^[A-Za-z0-9+/]{43}=$/.test(text)) return undefined;
    return new Secret(text);
  },
};

/** A whole number. */
export function integer(minimum: number, maximum: number): Kind<number> {
  return {
    expects: `a whole number from ${minimum} to ${maximum}`,
    schema: Type.Integer({ minimum, maximum }),
    convert: (text) => (/^\d{1,16}$/.test(text) ? Number(text) : undefined),
  };
}

/** A share of a whole. */
export const share: Kind<number> = {
  expects: 'a number from 0 to 1, as in 0.1',
  schema: Type.Number({ minimum: 0, maximum: 1 }),
  convert: (text) => (/^\d(\.\d{1,9})?$/.test(text) ? Number(text) : undefined),
};

/** A moment. */
export const time: Kind<Date> = {
  expects: 'a time in UTC, as in 2026-11-24T12:00:00Z',
  schema: Defined,
  convert(text) {
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/.test(text)) return undefined;
    const moment = new Date(text);
    return Number.isNaN(+moment) ? undefined : moment;
  },
};

/** One of a few words. */
export function oneOf<const Word extends string>(...words: Word[]): Kind<Word> {
  return {
    expects: `one of ${words.join(', ')}`,
    schema: Type.Enum(words),
    convert: (text) => words.find((word) => word === text),
  };
}

/** `on` or `off`. */
export const onOff: Kind<boolean> = {
  expects: 'on or off',
  schema: Type.Boolean(),
  convert: (text) =>
    ({ on: true, true: true, '1': true, off: false, false: false, '0': false })[text],
};

export interface ListenAddress {
  /** Name or address to bind. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/** `host:port`; an IPv6 address goes in brackets. */
export const listenAddress: Kind<ListenAddress> = {
  expects: 'host:port, as in localhost:8443, 0.0.0.0:8443 or [::]:8443',
  schema: Type.Object({
    host: Type.String({ minLength: 1 }),
    port: Type.Integer({ minimum: 0, maximum: 65_535 }),
  }),
  convert(text) {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
    const [, v6, name, port] = match ?? [];
    if (v6 !== undefined && isIP(v6) !== 6) return undefined;
    const host = v6 ?? name;
    return host === undefined ? undefined : { host, port: Number(port) };
  },
};

export interface AllowedHost {
  /** Lower case, without brackets. */
  readonly host: string;
  /** Any port when undefined. */
  readonly port: number | undefined;
}

/** Comma-separated `host[:port]`. */
export const allowedHosts: Kind<readonly AllowedHost[]> = {
  expects: 'a comma-separated list of host or host:port',
  schema: Type.Array(
    Type.Object({
      host: Type.String({ minLength: 1 }),
      port: Type.Union([Type.Integer({ minimum: 1, maximum: 65_535 }), Type.Undefined()]),
    }),
  ),
  convert: (text) => everyItem(text, parseAllowedHost),
};

/** Comma-separated origins, as browsers send them. */
export const originList: Kind<readonly string[]> = {
  expects: 'a comma-separated list of origins, as in https://app.example.com',
  schema: Type.Array(Type.String()),
  convert: (text) => everyItem(text, origin('https:', 'http:').convert),
};

/** Comma-separated words without spaces: addresses or networks. */
export const addressList: Kind<readonly string[]> = {
  expects: 'a comma-separated list of addresses or networks',
  schema: Type.Array(Type.String()),
  convert: (text) => everyItem(text, (item) => (isNetwork(item) ? item : undefined)),
};

/** Whether a text is an address, alone or with the length of a prefix. */
function isNetwork(text: string): boolean {
  const [, address = '', prefix = '0'] = /^([0-9a-fA-F.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(prefix) <= (family === 4 ? 32 : 128);
}

/** Comma-separated template names. */
export const templateList: Kind<readonly Template[]> = {
  expects: `a comma-separated list of ${TEMPLATES.join(', ')}`,
  schema: Type.Array(Type.Enum([...TEMPLATES]), { uniqueItems: true }),
  convert: (text) => everyItem(text, parseTemplate),
};

/** Comma-separated public keys that sign images: the 32 bytes in base64url. */
export const publicKeyList: Kind<readonly string[]> = {
  expects:
    'a comma-separated list of public keys, as in ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  schema: Type.Array(Type.String()),
  convert: (text) =>
    everyItem(text, (item) =>
      /^ed25519:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/.test(item) ? item : undefined,
    ),
};

export type PoolSizes = Readonly<Partial<Record<Template, number>>>;

/** `standard=2,browser=0`. */
export const poolSizes: Kind<PoolSizes> = {
  expects: 'a comma-separated list of template=count, as in standard=2,browser=0',
  schema: Type.Unsafe({
    type: 'object',
    additionalProperties: { type: 'integer', minimum: 0, maximum: 1000 },
  }),
  convert(text) {
    const entries = everyItem(text, parsePoolEntry);
    if (entries === undefined) return undefined;
    const sizes = Object.fromEntries(entries);
    return Object.keys(sizes).length === entries.length ? sizes : undefined;
  },
};

/** The converted items, or undefined when an item is invalid. Empty items are skipped. */
function everyItem<T>(text: string, parse: (item: string) => T | undefined): T[] | undefined {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .map(parse);
  return items.every((item) => item !== undefined) ? items : undefined;
}

function parseTemplate(text: string): Template | undefined {
  return TEMPLATES.find((template) => template === text);
}

function parsePoolEntry(item: string): [Template, number] | undefined {
  const [, name = '', count] = /^([a-z]+)\s*=\s*(\d{1,4})$/.exec(item) ?? [];
  const template = parseTemplate(name);
  return template === undefined ? undefined : [template, Number(count)];
}

/** A name and a value of visible ASCII characters and spaces. */
function parseHeader(item: string): [string, Secret] | undefined {
  const [, name, value] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+)=([\x20-\x7e]+)$/.exec(item) ?? [];
  return name === undefined || value === undefined
    ? undefined
    : [name.toLowerCase(), new Secret(value)];
}

function parseAllowedHost(item: string): AllowedHost | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(item);
  const host = match?.[1] ?? match?.[2];
  if (host === undefined) return undefined;
  return {
    host: host.toLowerCase(),
    port: match?.[3] === undefined ? undefined : Number(match[3]),
  };
}

/** A URL without credentials, query and fragment. */
function parsePlainUrl(text: string, protocols: readonly string[]): URL | undefined {
  const url = parseUrl(text, protocols);
  const extras = url === undefined ? '' : url.username + url.password + url.search + url.hash;
  return extras === '' ? url : undefined;
}

function parseUrl(text: string, protocols: readonly string[]): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && url.hostname !== '' && protocols.includes(url.protocol)
    ? url
    : undefined;
}

import { describe, expect, test, vi } from 'vitest';
import { SignedUrls, type UrlQuery } from './signed-urls.ts';

const urls = new SignedUrls([Buffer.alloc(32, 7)], () => 'https://svc.test');
const later = () => Math.floor(Date.now() / 1000) + 60;

/** The decoded key and the query of a URL, as a server sees them. */
function requestOf(url: string): { key: string; query: UrlQuery } {
  const { pathname, searchParams } = new URL(url);
  const query = Object.fromEntries(searchParams) as unknown as UrlQuery;
  return { key: decodeURIComponent(pathname.slice('/objects/'.length)), query };
}

describe('a signed URL', () => {
  test('is accepted for its method and key', () => {
    const grant = { method: 'PUT', key: 'a b/ü?#%/c', expires: later(), size: 5 } as const;
    const { key, query } = requestOf(urls.sign(grant));
    expect(urls.verify('PUT', key, query)).toEqual(grant);
  });

  test('keeps its signature behind another origin', () => {
    const { key, query } = requestOf(urls.sign({ method: 'GET', key: 'a', expires: later() }));
    const elsewhere = new SignedUrls([Buffer.alloc(32, 7)], () => 'http://10.0.0.1');
    expect(elsewhere.verify('GET', key, query)).toMatchObject({ key: 'a' });
  });

  test('expires', () => {
    const { key, query } = requestOf(urls.sign({ method: 'GET', key: 'a', expires: later() }));
    vi.useFakeTimers({ now: Date.now() + 61_000 });
    try {
      expect(() => urls.verify('GET', key, query)).toThrow(
        expect.objectContaining({ code: 'object_url_expired' }),
      );
    } finally {
      vi.useRealTimers();
    }
  });

  const signed = () => requestOf(urls.sign({ method: 'GET', key: 'a/b', expires: later() }));
  const { query: valid } = signed();
  const text = valid.signature ?? '';
  test.each([
    ['another method', 'PUT', 'a/b', {}],
    ['another key', 'GET', 'a/c', {}],
    ['a key that begins like it', 'GET', 'a/b/c', {}],
    ['the key in another case', 'GET', 'A/b', {}],
    ['a later expiry', 'GET', 'a/b', { expires: String(Number(valid.expires) + 1) }],
    ['the same expiry in another form', 'GET', 'a/b', { expires: `0${valid.expires}` }],
    ['no expiry', 'GET', 'a/b', { expires: undefined }],
    ['an expiry that is no number', 'GET', 'a/b', { expires: '1e99' }],
    ['a size that was not signed', 'GET', 'a/b', { size: '1' }],
    ['no signature', 'GET', 'a/b', { signature: undefined }],
    ['an empty signature', 'GET', 'a/b', { signature: '' }],
    ['a truncated signature', 'GET', 'a/b', { signature: text.slice(0, -1) }],
    ['a longer signature', 'GET', 'a/b', { signature: `${text}=` }],
    ['a forged signature', 'GET', 'a/b', { signature: 'A'.repeat(text.length) }],
    ['characters that are not ASCII', 'GET', 'a/b', { signature: 'ü'.repeat(text.length) }],
  ] as const)('is refused with %s', (_case, method, key, changes) => {
    expect(() => urls.verify(method, key, { ...valid, ...changes })).toThrow(
      expect.objectContaining({ code: 'object_url_invalid' }),
    );
  });

  test('of another cluster is refused', () => {
    const other = new SignedUrls([Buffer.alloc(32, 8)], () => 'https://svc.test');
    const { key, query } = requestOf(other.sign({ method: 'GET', key: 'a', expires: later() }));
    expect(() => urls.verify('GET', key, query)).toThrow(
      expect.objectContaining({ code: 'object_url_invalid' }),
    );
  });

  test('is not issued for an invalid key', () => {
    expect(() => urls.sign({ method: 'GET', key: '../a', expires: later() })).toThrow(
      expect.objectContaining({ code: 'object_key_invalid' }),
    );
  });
});

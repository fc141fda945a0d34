import { readFile } from 'node:fs/promises';
import type { BrowserContext, Page, Response } from 'playwright-core';

const DEADLINE_MS = 120_000;
const ATTEMPTS = 5;
/** Long enough for a page that may lead its opener elsewhere. */
const MOVE_MS = 10_000;
/** What no page of a port may see. */
const SECRET = 'secret-of-the-api';

/** The addresses in an attack, as a browser sees them. */
export interface AttackedAddresses {
  /** A page of the API. */
  readonly page: string;
  /** The hostile page of a sandbox. */
  readonly hostile: string;
  /** A page of another sandbox of the same account, by a link. */
  readonly other: string;
  /** The same page without the link. */
  readonly unlinked: string;
}

/**
 * Shows a page of the API, which keeps a secret in every kind of storage, and has it open the hostile page. Returns what
 * that page succeeded in, in words.
 */
export async function attack(
  context: BrowserContext,
  addresses: AttackedAddresses,
): Promise<string[]> {
  context.setDefaultTimeout(DEADLINE_MS);
  const victim = await context.newPage();
  await visit(victim, addresses.page);
  await victim.evaluate(await readFile(new URL('victim.js', import.meta.url), 'utf8'));
  await victim.evaluate(`keepSecret('${SECRET}')`);
  const neighbour = await context.newPage();
  await visit(neighbour, addresses.other);
  const before = await context.cookies();

  const hostile = await openFrom(victim, addresses);
  const succeeded = await hostile.evaluate<string[]>('attackAll()');
  const after = await context.cookies();
  const known = new Set(before.map(({ name }) => name));
  if (after.some(({ name, path }) => path === '/' && !known.has(name))) {
    succeeded.push('sets a cookie for the API by a header');
  }
  await hostile.evaluate("opener.postMessage('trust me', '*')");
  const sender = await victim.waitForFunction('globalThis.sender');
  if ((await sender.jsonValue()) !== 'null') succeeded.push('sends a message as the API');
  if (await moves(hostile, victim)) succeeded.push('moves its opener');
  for (const path of ['clear', 'hints']) {
    await visit(hostile, new URL(path, addresses.hostile).href);
  }
  return [...succeeded, ...(await effectsOn(context, addresses.page))];
}

/** Has a page open the hostile one, which so gets to know its opener. */
async function openFrom(victim: Page, { page, hostile, other, unlinked }: AttackedAddresses) {
  const query = new URLSearchParams({ api: page, linked: other, unlinked });
  const address = `${hostile}?${query}`;
  const popup = victim.waitForEvent('popup');
  await victim.evaluate(`void open(${JSON.stringify(address)})`);
  const opened = await popup;
  await opened.waitForLoadState('load');
  if (opened.url().startsWith('chrome-error:')) await visit(opened, address);
  return opened;
}

/**
 * Shows a page. Chromium ends the handshakes under way when an address of the machine changes, as other tests change them, so
 * such a failure is tried again.
 */
async function visit(page: Page, address: string): Promise<Response | null> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await page.goto(address);
    } catch (error) {
      if (attempt === ATTEMPTS || !String(error).includes('ERR_NETWORK_CHANGED')) throw error;
    }
  }
}

/** Whether a page can lead its opener to another address. */
async function moves(hostile: Page, opener: Page): Promise<boolean> {
  const moved = opener.waitForURL('**/moved', { timeout: MOVE_MS, waitUntil: 'commit' });
  await hostile.evaluate("try { opener.location = new URL('moved', location.href); } catch {}");
  return await moved.then(
    () => true,
    () => false,
  );
}

/** What the hostile page has changed at a page of the API. */
async function effectsOn(context: BrowserContext, address: string): Promise<string[]> {
  const page = await context.newPage();
  const answer = await visit(page, address);
  const kept = await page.evaluate<string>("[localStorage.getItem('key'), document.cookie].join()");
  const asked = (await answer?.request().allHeaders()) ?? {};
  return [
    ...(kept.split(SECRET).length === 3 ? [] : ['clears the storage of the API']),
    ...('sec-ch-ua-model' in asked ? ['changes what browsers tell the API'] : []),
  ];
}

import { expect, test } from 'vitest';
import { describePage } from './browser-tool.ts';

const NEVER = new AbortController().signal;

const tree = (role: string, name: string) => ({
  nodes: [
    { nodeId: '1', ignored: false, role: { value: 'RootWebArea' }, childIds: ['2'] },
    {
      nodeId: '2',
      ignored: false,
      role: { value: role },
      name: { value: name },
      backendDOMNodeId: 7,
      parentId: '1',
    },
  ],
});

/** A browser that commits the next document while its tree is read, as often as `times`. */
function restlessBrowser(times: number) {
  const browser = {
    document: 1,
    send: async (method: string, _params: object, schema: { parse(value: unknown): unknown }) => {
      const { document } = browser;
      if (method === 'Accessibility.getFullAXTree') {
        if (document <= times) browser.document += 1;
        return schema.parse(tree('button', `of document ${document}`));
      }
      const value = { url: `http://site/${document}`, title: `Title ${document}` };
      return schema.parse({ result: { value } });
    },
  };
  return browser as never;
}

test.each([0, 1, 3])('a page is read again when %i more documents come', async (times) => {
  const text = await describePage(restlessBrowser(times), NEVER);
  const last = times + 1;
  expect(text).toContain(`Page: Title ${last}\nURL: http://site/${last}`);
  expect(text).toContain(`button "of document ${last}" [ref=d${last}e7]`);
});

test('the references of a page that never rests name none of its next document', async () => {
  expect(await describePage(restlessBrowser(1_000), NEVER)).toContain('[ref=d5e7]');
});

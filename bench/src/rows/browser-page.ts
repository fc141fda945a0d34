import { readFile } from 'node:fs/promises';
import { type Row, ratioResult } from '../measure/row.ts';

const TIMES_FASTER = 5;
/** Each run creates a sandbox and starts a browser. */
const MOST_RUNS = 5;
const TIMEOUT_SECONDS = 300;
const SCRIPT = '/root/open-page.cjs';
/** The settings of the browser that runs in the template, as far as they matter for speed, with a profile of its own. */
const COLD_BROWSER = [
  '/usr/lib/chromium/chromium-headless-shell',
  '--user-data-dir=/root/profile',
  '--remote-debugging-port=0',
  '--no-sandbox',
  '--no-startup-window',
  '--window-size=1280,800',
  '--no-first-run',
  '--disable-gpu',
  '--disable-software-rasterizer',
  '--disable-sync',
  '--disable-background-networking',
  '--disable-component-update',
].join(' ');

/** The first page of a fresh sandbox, compared with a browser that is started in the same VM. */
export const browserPage: Row = {
  name: 'browser-page',
  pool: 1,
  templates: ['browser'],
  async run({ service, runs, progress }) {
    const script = await readFile(new URL('../guest/open-page.cjs', import.meta.url));
    const samples = { ours: [] as number[], comparison: [] as number[] };
    const count = Math.min(runs, MOST_RUNS);
    for (let run = 1; run <= count; run += 1) {
      await service.settled();
      const { id } = await service.createSandbox({ template: 'browser' });
      const { sandboxes } = service.client;
      const openPage = async (browser = '') => {
        const command = `node ${SCRIPT} ${browser}`;
        const request = { command, timeout_seconds: TIMEOUT_SECONDS };
        const { exit_code, output } = await sandboxes.exec(id, request);
        if (exit_code !== 0) throw new Error(`${command} failed: ${output}`);
        return Number(output);
      };
      try {
        await sandboxes.files.write(id, SCRIPT, script);
        samples.ours.push(await openPage());
        samples.comparison.push(await openPage(COLD_BROWSER));
      } finally {
        await sandboxes.delete(id);
      }
      progress(`${run}/${count}`);
    }
    return [
      ratioResult({
        name: this.name,
        what: 'open a page in a fresh sandbox, load a site, take a screenshot',
        against: 'a browser started in the same VM',
        unit: 'ms',
        inverse: true,
        ...samples,
        atLeast: TIMES_FASTER,
      }),
    ];
  },
};

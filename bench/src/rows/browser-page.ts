import { readFile } from 'node:fs/promises';
import { type Row, ratioResult } from '../measure/row.ts';

const TIMES_FASTER = 5;
/** Each run creates a sandbox and starts a browser. */
const MOST_RUNS = 5;
const TIMEOUT_SECONDS = 300;
const SCRIPT = '/root/open-page.cjs';
/** The settings of the browser that runs in the template, as far as they matter for speed, with a profile of its own. */
const COLD_BROWSER = [
  '/root/chromium/chromium-headless-shell',
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

/** Neither the disk cache nor the processes of the running browser have the files of this copy. */
const COPY_BROWSER = 'cp -r /usr/lib/chromium /root && sync && echo 3 > /proc/sys/vm/drop_caches';

/** The first page of a fresh sandbox, compared with a cold start of the same browser in another fresh one. */
export const browserPage: Row = {
  name: 'browser-page',
  pool: 1,
  templates: ['browser'],
  async run({ service, runs, progress }) {
    const script = await readFile(new URL('../guest/open-page.cjs', import.meta.url));
    const samples = { ours: [] as number[], comparison: [] as number[] };
    const count = Math.min(runs, MOST_RUNS);
    const { sandboxes } = service.client;
    const exec = async (id: string, command: string) => {
      const request = { command, timeout_seconds: TIMEOUT_SECONDS };
      const { exit_code, output } = await sandboxes.exec(id, request);
      if (exit_code !== 0) throw new Error(`${command} failed: ${output}`);
      return output;
    };
    const openPage = async (prepare: string, browser: string) => {
      await service.settled();
      const { id } = await service.createSandbox({ template: 'browser' });
      try {
        await sandboxes.files.write(id, SCRIPT, script);
        await exec(id, prepare);
        return Number(await exec(id, `node ${SCRIPT} ${browser}`));
      } finally {
        await sandboxes.delete(id);
      }
    };
    for (let run = 1; run <= count; run += 1) {
      samples.ours.push(await openPage('true', ''));
      samples.comparison.push(await openPage(COPY_BROWSER, COLD_BROWSER));
      progress(`${run}/${count}`);
    }
    return [
      ratioResult({
        name: this.name,
        what: 'open a page in a fresh sandbox, load a site, take a screenshot',
        against: 'a browser started cold in a fresh sandbox',
        unit: 'ms',
        inverse: true,
        ...samples,
        atLeast: TIMES_FASTER,
      }),
    ];
  },
};

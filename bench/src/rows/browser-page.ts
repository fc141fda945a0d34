import { DevTools } from '../browser/devtools.ts';
import { timed } from '../measure/in-turns.ts';
import { type Row, ratioResult } from '../measure/row.ts';

const TIMES_FASTER = 5;
/** Each run creates two sandboxes and starts a browser. */
const MOST_RUNS = 5;
const TIMEOUT_SECONDS = 300;
const RUNNING_PORT = 9222;
const COLD_PORT = 9333;
const SITE_PORT = 8000;
/** A web server with a page, as in a customer's sandbox, that has answered before. */
const SITE = `mkdir /tmp/site && cd /tmp/site && cat >index.html <<'END'
<!doctype html><title>Bench</title><style>body { font: 18px sans-serif }</style>
<h1>A page</h1><form><label>Name <input name="name"></label><button>Send</button></form>
<ul>${'<li>Some text, which is laid out and drawn.</li>'.repeat(40)}</ul>
END
python3 -m http.server --bind 127.0.0.1 ${SITE_PORT} >/dev/null 2>&1 </dev/null &
until curl -sf 127.0.0.1:${SITE_PORT} >/dev/null; do sleep 0.2; done`;

/** Neither the disk cache nor the processes of the running browser have the files of this copy. */
const COPY_BROWSER = 'cp -r /usr/lib/chromium /root && sync && echo 3 > /proc/sys/vm/drop_caches';
/** The settings of the browser that runs in the template, as far as they matter for speed, with a profile of its own. */
const START_BROWSER = [
  '/root/chromium/chromium-headless-shell',
  '--user-data-dir=/root/profile',
  `--remote-debugging-port=${COLD_PORT}`,
  '--no-sandbox',
  '--no-startup-window',
  '--window-size=1280,800',
  '--no-first-run',
  '--disable-gpu',
  '--disable-software-rasterizer',
  '--disable-sync',
  '--disable-background-networking',
  '--disable-component-update',
  '>/dev/null 2>&1 </dev/null &',
].join(' ');

/**
 * The first page of a fresh sandbox from the pool, compared with a cold start of the same browser in another one. The client
 * is outside, since the first steps of a program inside take seconds on an emulated processor, whichever browser it uses.
 */
export const browserPage: Row = {
  name: 'browser-page',
  pool: 1,
  templates: ['browser'],
  async run({ service, runs, progress }) {
    const samples = { ours: [] as number[], comparison: [] as number[] };
    const count = Math.min(runs, MOST_RUNS);
    const { sandboxes } = service.client;
    const exec = async (id: string, command: string) => {
      const request = { command, timeout_seconds: TIMEOUT_SECONDS };
      const { exit_code, output } = await sandboxes.exec(id, request);
      if (exit_code !== 0) throw new Error(`${command} failed: ${output}`);
    };
    const show = async (id: string, port: number) => {
      const { url } = await sandboxes.link(id, { port });
      const browser = await DevTools.connect(url, service.ca);
      try {
        await browser.show(`http://127.0.0.1:${SITE_PORT}/`);
      } finally {
        browser.close();
      }
    };
    const inFreshSandbox = async (measure: (id: string) => Promise<number>) => {
      await service.rested();
      const { id } = await service.createSandbox({ template: 'browser' });
      try {
        await exec(id, SITE);
        return await measure(id);
      } finally {
        await sandboxes.delete(id);
      }
    };
    for (let run = 1; run <= count; run += 1) {
      samples.ours.push(await inFreshSandbox((id) => timed(() => show(id, RUNNING_PORT))));
      samples.comparison.push(
        await inFreshSandbox(async (id) => {
          await exec(id, COPY_BROWSER);
          return timed(async () => {
            await exec(id, START_BROWSER);
            await show(id, COLD_PORT);
          });
        }),
      );
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

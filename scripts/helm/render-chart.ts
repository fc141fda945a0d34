import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';
import { CHART } from '../release/facts.ts';

const DEADLINE_MS = 60_000;

export type Values = Readonly<Record<string, unknown>>;

export interface ChartRelease {
  readonly name: string;
  readonly namespace: string;
  readonly values: Values;
}

/** The values of a chart and those of its user over them, as Helm merges them. */
export function mergeValues(defaults: Values, own: Values): Values {
  const merged = Object.entries(own).map(([key, value]) => {
    const below = defaults[key];
    return [key, isMap(below) && isMap(value) ? mergeValues(below, value) : value];
  });
  return { ...defaults, ...Object.fromEntries(merged) };
}

/**
 * Renders the chart's templates, by their names. Helm cannot be installed everywhere. This uses the template engine of Go and
 * the functions of Sprig, as Helm does, but in Caddy's file server. The functions that only Helm has, such as `include` and
 * `toYaml`, are missing.
 * @throws Error with Caddy's log when a template fails
 */
export async function renderChart(release: ChartRelease): Promise<ReadonlyMap<string, string>> {
  const root = await mkdtemp(join(tmpdir(), 'svc-chart-'));
  const socket = join(root, 'socket');
  const ended = new AbortController();
  try {
    const names = await writePages(root, release);
    const caddy = spawn(
      'caddy',
      ['file-server', '--templates', '--root', root, '--listen', `unix/${socket}`],
      {
        env: { PATH: process.env.PATH, HOME: root },
        stdio: ['ignore', 'ignore', 'pipe'],
        signal: AbortSignal.any([ended.signal, AbortSignal.timeout(DEADLINE_MS)]),
      },
    );
    const exit = once(caddy, 'close').catch(() => undefined);
    let log = '';
    try {
      const ready = Promise.withResolvers<void>();
      caddy.stderr.setEncoding('utf8').on('data', (text: string) => {
        log += text;
        if (log.includes('serving static files')) ready.resolve();
      });
      await Promise.race([ready.promise, exit]);
      const pages = names.map(async (name) => [name, await page(socket, `/${name}.txt`)] as const);
      return new Map(await Promise.all(pages));
    } catch (cause) {
      throw new Error(`The chart cannot be rendered:\n${log}`, { cause });
    } finally {
      ended.abort();
      await exit;
    }
  } finally {
    await rm(root, { recursive: true });
  }
}

/** Writes a page for each template, with the parts that all share. Returns their names. */
async function writePages(root: string, release: ChartRelease): Promise<string[]> {
  const templates = join(CHART, 'templates');
  const files = await readdir(templates);
  const read = (file: string) => readFile(join(templates, file), 'utf8');
  const parts = await Promise.all(files.filter((file) => file.startsWith('_')).map(read));
  const { name, namespace } = release;
  const chart = parse(await readFile(join(CHART, 'Chart.yaml'), 'utf8'));
  const context = {
    Values: release.values,
    Release: { Name: name, Namespace: namespace, Service: 'Helm' },
    Chart: { Name: chart.name, Version: chart.version, AppVersion: chart.appVersion },
  };
  const pages = files.filter((file) => !file.startsWith('_'));
  for (const file of pages) {
    const page = `{{- define "page" }}${await read(file)}{{ end }}`;
    const call = `{{ template "page" (fromJson ${JSON.stringify(JSON.stringify(context))}) }}`;
    await writeFile(join(root, `${basename(file)}.txt`), [...parts, page, call].join('\n'));
  }
  return pages;
}

async function page(socketPath: string, path: string): Promise<string> {
  const sent = request({ socketPath, path, signal: AbortSignal.timeout(DEADLINE_MS) }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const body = await text(response);
  if (response.statusCode !== 200)
    throw new Error(`${path}: status ${response.statusCode} ${body}`);
  return body;
}

function isMap(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { readServiceRecord } from '@svc/service-driver';
import { expect, onTestFinished, test } from 'vitest';
import { promtool } from '../../test/promtool.ts';
import { shared } from '../../test/shared-service.ts';

const SCRAPE_MS = 60_000;

const root = join(import.meta.dirname, '../../..');
const rules = join(root, 'deploy/prometheus');

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

const alerts = await readFile(join(rules, 'alerts.yaml'), 'utf8');
const dashboard = JSON.parse(
  await readFile(join(root, 'deploy/grafana/svc.json'), 'utf8'),
) as Dashboard;
const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));

test('each alert fires when it should, and none in good times', async () => {
  expect(await promtool(['check', 'rules', 'alerts.yaml'], rules)).toContain('SUCCESS');
  expect(await promtool(['test', 'rules', 'alerts.test.yaml'], rules)).toContain('SUCCESS');
  const settings = ['check', 'config', '--syntax-only', 'prometheus.yaml'];
  expect(await promtool(settings, rules)).toContain('SUCCESS');
  const tested = await readFile(join(rules, 'alerts.test.yaml'), 'utf8');
  const handbook = await readFile(join(root, 'docs/operations.md'), 'utf8');
  for (const [, alert] of alerts.matchAll(/- alert: (\w+)/g)) {
    expect(tested.match(new RegExp(`alertname: ${alert}$`, 'gm')), alert).toHaveLength(2);
    expect(handbook).toContain(`\`${alert}\``);
  }
});

test('every expression of the dashboard is PromQL', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'svc-dashboard-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const records = expressions.map((expr, index) => ({
    record: `panel:${index}`,
    expr: expr.replaceAll('$__rate_interval', '5m'),
  }));
  // JSON is YAML.
  const groups = { groups: [{ name: 'dashboard', rules: records }] };
  await writeFile(join(directory, 'rules.yaml'), JSON.stringify(groups));
  expect(await promtool(['check', 'rules', 'rules.yaml'], directory)).toContain(
    `SUCCESS: ${expressions.length} rules found`,
  );
});

test('the metrics of the components are those of the handbook, and alerts and dashboard use no others', async () => {
  const served = await servedMetrics();
  const handbook = await readFile(join(root, 'docs/operations.md'), 'utf8');
  const documented = [...handbook.matchAll(/^\| `svc_.*?\|/gm)].flatMap(([cell]) =>
    [...cell.matchAll(/`(svc_[a-z_<>]+)`/g)].flatMap(([, name = '']) =>
      ['control_plane', 'runtime', 'worker'].map((part) => name.replace('<component>', part)),
    ),
  );
  expect([...new Set(documented)].sort()).toEqual([...served].sort());
  const used = [alerts, ...expressions].join('\n').matchAll(/\bsvc_[a-z_]*[a-z]\b/g);
  for (const [name] of used) {
    expect(served).toContain(served.has(name) ? name : name.replace(/_(bucket|count|sum)$/, ''));
  }
});

/** The names of the metrics of all components, without those of the process. */
async function servedMetrics(): Promise<Set<string>> {
  const record = await readServiceRecord(shared.address.dataDir);
  const origins = [record?.base_url, record?.runtime_url, record?.workers?.[0]?.url];
  const pages = await Promise.all(origins.map((origin) => scrape(`${origin}/metrics`)));
  const names = pages.flatMap((page) => [...page.matchAll(/^# TYPE (svc_[a-z_]+) /gm)]);
  return new Set(names.map(([, name = '']) => name));
}

/** Does not check the certificate, like the scrape of a worker. */
async function scrape(url: string): Promise<string> {
  const request = get(url.replace('wss:', 'https:'), {
    rejectUnauthorized: false,
    signal: AbortSignal.timeout(SCRAPE_MS),
  });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  return text(response);
}

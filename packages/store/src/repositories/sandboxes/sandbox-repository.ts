import type { EndReason, SandboxState, WorkerSandbox } from '@svc/contract';
import { type Kysely, sql } from 'kysely';
import { type BatchLoad, batchLoad } from '../../batch-load.ts';
import { ago, removeBatch } from '../../remove-batch.ts';
import type { SandboxRow, Schema } from '../../schema.ts';
import type { PlacementRules } from './choose-worker.ts';
import { type Ending, end, endAll, endLost, forget, type LostEnding } from './ending.ts';
import {
  compareReports,
  entriesOf,
  findAgentRoute,
  findOwned,
  type LedgerEntry,
  listOwned,
  type OwnedId,
  type RoutedSandbox,
  type SandboxPage,
  type SeenSandbox,
} from './lookup.ts';
import { type PlacedRow, type PlacementRequest, placeAgain, reserve } from './placement.ts';
import { applyReports } from './reports.ts';

/**
 * The desired state of sandboxes. Every change of state is one conditional update that names the states it may start
 * from and the generation.
 */
export class SandboxRepository {
  readonly #db: Kysely<Schema>;
  readonly #rules: PlacementRules;
  readonly #owned: BatchLoad<OwnedId, SeenSandbox>;

  /**
   * @param db connections that prepare statements, whose texts are therefore few and fixed
   * @param lookups connections for statements that serve many requests
   */
  constructor(db: Kysely<Schema>, lookups: Kysely<Schema>, rules: PlacementRules) {
    this.#db = db;
    this.#rules = rules;
    this.#owned = batchLoad((ids) => findOwned(lookups, ids));
  }

  /** A sandbox of this tenant that is live or has recently ended. */
  find(tenantId: string, vmId: string): Promise<SeenSandbox | undefined> {
    return this.#owned({ tenantId, vmId });
  }

  /** The sandbox with this id, however long ago it ended. */
  async findAny(vmId: string): Promise<SandboxRow | undefined> {
    return this.#db
      .selectFrom('sandboxes')
      .selectAll()
      .where('vm_id', '=', vmId)
      .executeTakeFirst();
  }

  list(tenantId: string, page?: SandboxPage): Promise<SeenSandbox[]> {
    return listOwned(this.#db, tenantId, page);
  }

  /** See {@link reserve}. */
  reserve(request: PlacementRequest): ReturnType<typeof reserve> {
    return reserve(this.#db, request, this.#rules);
  }

  /** See {@link placeAgain}. */
  placeAgain(current: PlacedRow, excluded: readonly string[]): ReturnType<typeof placeAgain> {
    return placeAgain(this.#db, current, this.#rules, excluded);
  }

  /** See {@link applyReports}. */
  applyReports(workerId: string, reports: readonly WorkerSandbox[]): Promise<SandboxRow[]> {
    return applyReports(this.#db, workerId, reports);
  }

  /** See {@link end}. */
  end(ending: Ending): Promise<SandboxRow | undefined> {
    return end(this.#db, ending);
  }

  /** See {@link endLost}. */
  endLost(ending: LostEnding): Promise<SandboxRow | undefined> {
    return endLost(this.#db, ending);
  }

  /** See {@link endAll}. */
  endAll(endings: readonly Ending[]): Promise<SandboxRow[]> {
    return endAll(this.#db, endings);
  }

  /** See {@link forget}. */
  forget(vmId: string, generation?: number): Promise<SandboxRow | undefined> {
    return forget(this.#db, vmId, generation);
  }

  /** Records the request to delete a sandbox. The reconciler deletes it when its worker is available again. */
  async requestDelete(vmId: string): Promise<void> {
    await this.#db
      .updateTable('sandboxes')
      .set({ delete_requested_at: sql`coalesce(delete_requested_at, now())` })
      .where('vm_id', '=', vmId)
      .where('state', '<>', 'destroyed')
      .execute();
  }

  /** Whether this sandbox is live and on this worker. */
  async isHeldBy(workerId: string, vmId: string): Promise<boolean> {
    const row = await this.#db
      .selectFrom('sandboxes')
      .select('vm_id')
      .where('vm_id', '=', vmId)
      .where('worker_id', '=', workerId)
      .where('state', '<>', 'destroyed')
      .executeTakeFirst();
    return row !== undefined;
  }

  /** See {@link findAgentRoute}. */
  agentRoute(vmId: string): Promise<RoutedSandbox | undefined> {
    return findAgentRoute(this.#db, vmId);
  }

  /** The number of sandboxes in each state, except ended ones. */
  async countByState(): Promise<Map<SandboxState, number>> {
    const rows = await this.#db
      .selectFrom('sandboxes')
      .select((eb) => ['state', eb.fn.countAll<string>().as('count')])
      .where('state', '<>', 'destroyed')
      .groupBy('state')
      .execute();
    return new Map(rows.map((row) => [row.state, Number(row.count)]));
  }

  /** How many sandboxes have ended in these last seconds, by reason. */
  async countEnded(seconds: number): Promise<Map<EndReason, number>> {
    const rows = await this.#db
      .selectFrom('sandboxes')
      .select((eb) => ['end_reason', eb.fn.countAll<string>().as('count')])
      .where('state', '=', 'destroyed')
      .where('ended_at', '>', ago(seconds))
      .groupBy('end_reason')
      .execute();
    return new Map(
      rows.flatMap(({ end_reason, count }) =>
        end_reason === null ? [] : [[end_reason, Number(count)] as const],
      ),
    );
  }

  /** Removes up to `limit` records of sandboxes that ended longer ago than this. Returns their number. */
  removeEnded(olderThanSeconds: number, limit: number): Promise<number> {
    const isOld = sql`state = 'destroyed' and ended_at < ${ago(olderThanSeconds)}`;
    return removeBatch(this.#db, 'sandboxes', isOld, limit);
  }

  /** See {@link entriesOf}. */
  entriesOf(workerId: string): Promise<LedgerEntry[]> {
    return entriesOf(this.#db, workerId);
  }

  /** See {@link compareReports}. */
  compareReports(
    workerId: string,
    reports: readonly WorkerSandbox[],
    isComplete: boolean,
  ): Promise<LedgerEntry[]> {
    return compareReports(this.#db, workerId, reports, isComplete);
  }
}

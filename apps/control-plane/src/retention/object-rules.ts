import type { ObjectStore } from '@svc/object-store';
import type { Store } from '@svc/store';
import { IMAGE_OBJECTS } from '../images/object-keys.ts';
import { ObjectInventory, type ObjectInventoryParts } from '../objects/object-inventory.ts';
import type { Objects } from '../objects/open-objects.ts';
import { within } from '../objects/within.ts';
import { SESSION_OBJECTS } from '../sessions/files/object-keys.ts';
import { WORKSPACE_OBJECTS } from '../workspaces/object-keys.ts';
import type { Workspaces } from '../workspaces/workspaces.ts';
import type { RetentionRule } from './rules.ts';

const SECOND_MS = 1_000;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const OBJECTS = 1_000;
/** Workspaces, each with up to a thousand uploads. */
const WORKSPACES = 20;

export interface ObjectRulesParts extends Pick<ObjectInventoryParts, 'lostChunks' | 'logger'> {
  readonly store: Pick<Store, 'objectDeletions' | 'sessionChunks' | 'workspaceChunks'>;
  readonly objects: Pick<ObjectStore, 'delete' | 'list' | 'head'>;
  /** Undefined if S3 serves the presigned URLs. */
  readonly urls: Objects['urls'];
  readonly workspaces: Pick<Workspaces, 'endExpiredUploads'>;
}

/** A rule for objects, and the time between two passes in ms. */
export interface ObjectRule {
  readonly rule: RetentionRule;
  readonly everyMs: number;
}

/** What is removed after a time and needs the object store. */
export function objectRules(parts: ObjectRulesParts): ObjectRule[] {
  const { store, objects, urls, workspaces } = parts;
  // Longer than a request that was begun with a URL just before it expired: S3 ends none, a control plane after an hour.
  const uploadSeconds = urls === undefined ? DAY : HOUR + 5 * MINUTE;
  return [
    {
      rule: rule('given_up_objects', 0, OBJECTS, deleterOf(parts)),
      everyMs: 2 * SECOND_MS,
    },
    {
      rule: rule('workspace_uploads', uploadSeconds, WORKSPACES, (...call) =>
        workspaces.endExpiredUploads(...call),
      ),
      everyMs: 60 * SECOND_MS,
    },
    unknown('unknown_session_objects', SESSION_OBJECTS, store.sessionChunks),
    unknown('unknown_workspace_objects', WORKSPACE_OBJECTS, store.workspaceChunks),
    unknown('unknown_image_objects', IMAGE_OBJECTS, undefined),
  ];

  function unknown(
    kind: string,
    prefix: string,
    chunks: ObjectInventoryParts['chunks'],
  ): ObjectRule {
    const deletions = store.objectDeletions;
    const { lostChunks, logger } = parts;
    const own = { objects, deletions, chunks, prefix, lostChunks, logger };
    const inventory = new ObjectInventory(own);
    // Longer than any upload. One call covers as much as one pass should.
    const remove: RetentionRule['remove'] = (seconds, _, signal) =>
      inventory.compare(seconds, signal);
    return {
      rule: rule(kind, HOUR, Number.POSITIVE_INFINITY, remove),
      everyMs: 600 * SECOND_MS,
    };
  }
}

function rule(
  kind: string,
  seconds: number,
  batch: number,
  remove: RetentionRule['remove'],
): RetentionRule {
  return { kind, seconds, batch, remove };
}

/** Deletes objects that the ledger has given up. Tries only one after a failure, until the object store answers. */
function deleterOf({
  store,
  objects,
}: Pick<ObjectRulesParts, 'store' | 'objects'>): RetentionRule['remove'] {
  let isFailing = false;
  return async (_, limit, signal) => {
    const keys = await store.objectDeletions.claim(isFailing ? 1 : limit);
    if (keys.length === 0) return 0;
    try {
      await within(signal, (deadline) => objects.delete(keys, deadline));
    } catch (error) {
      isFailing = true;
      await store.objectDeletions.release(keys);
      throw error;
    }
    isFailing = false;
    await store.objectDeletions.done(keys);
    return keys.length;
  };
}

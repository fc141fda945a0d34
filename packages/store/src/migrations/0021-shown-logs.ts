import { type Kysely, sql } from 'kysely';

/** The logs of live agents, as far as customers were shown them, in parts. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [PARTS, MOVE, COLUMNS]) await sql.raw(statement).execute(db);
}

const PARTS = `
  -- 65,536 bytes of a log each, but for its first and last stored part. Bytes, for text refuses NUL and an agent may
  -- write anything.
  create table agent_log_parts (
    vm_id text not null references agent_logs on delete cascade,
    -- The position of the part in the log, in parts.
    part bigint not null,
    -- The position of the bytes in the log.
    first_byte bigint not null,
    bytes bytea not null,
    primary key (vm_id, part)
  );`;

const MOVE = `
  insert into agent_log_parts (vm_id, part, first_byte, bytes)
  select vm_id, part, greatest(part * 65536, start),
    substring(tail from (greatest(part * 65536, start) - start)::int + 1
      for (least((part + 1) * 65536, total_bytes) - greatest(part * 65536, start))::int)
  from (select vm_id, tail, total_bytes, total_bytes - octet_length(tail) as start from agent_logs
      where octet_length(tail) > 0) as log,
    generate_series(start / 65536, (total_bytes - 1) / 65536) as part;`;

const COLUMNS = `
  alter table agent_logs add column first_byte bigint not null default 0;
  alter table agent_logs add column is_final boolean not null default true;
  update agent_logs set first_byte = total_bytes - octet_length(tail);
  alter table agent_logs alter column first_byte drop default;
  alter table agent_logs alter column is_final drop default;
  alter table agent_logs drop column tail;`;

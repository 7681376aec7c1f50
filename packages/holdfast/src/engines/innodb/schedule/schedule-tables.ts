import { rowNameType, shownType } from '../schema/own-table.ts'
import type { OwnTables, TableTexts } from '../tx/short-call.ts'

/**
 * Schedules, and their ticks by scheduled instant. The row of the schedule is the one lock of its ticks: whoever takes a
 * tick has it, for a moment, or to the end of the transaction if the tick's work is part of that. A guard shares the row of
 * its tick. Rows are locked in this order; that of a tick is not waited for while that of its schedule is held.
 */
export const scheduleTables: OwnTables<'schedule' | 'tick'> = {
  schedule: {
    table: 'holdfast_schedule',
    columns: {
      id: rowNameType,
      name: shownType,
      // The latest tick that was taken or passed over; 0 if all of them are still to come. It only goes up.
      last_tick: 'BIGINT NOT NULL',
      paused_at: 'BIGINT',
      rule: 'TEXT CHARACTER SET utf8mb4',
    },
    key: ['id'],
  },
  tick: {
    table: 'holdfast_tick',
    columns: {
      id: rowNameType,
      // The scheduled instant; of a manual one, when it was asked for.
      tick_at: 'BIGINT NOT NULL',
      by_hand: 'SMALLINT NOT NULL',
      // 0 running, 1 failed and waiting for another attempt, 2 done, 3 failed, 4 lost, 5 skipped
      state: 'SMALLINT NOT NULL',
      attempt: 'INT NOT NULL',
      // The fence: whoever has another one than this has lost the tick.
      token: 'CHAR(36) CHARACTER SET ascii NOT NULL',
      holder: 'TEXT CHARACTER SET utf8mb4 NOT NULL',
      // Of a running one the end of its lease, of a waiting one when it may be tried again.
      lease_until: 'BIGINT',
      started_at: 'BIGINT NOT NULL',
      finished_at: 'BIGINT',
      missed: 'INT NOT NULL',
      error: 'TEXT CHARACTER SET utf8mb4',
    },
    key: ['id', 'tick_at', 'by_hand'],
    indexes: [['id', 'state', 'lease_until']],
  },
}

export type ScheduleTexts = TableTexts<keyof typeof scheduleTables>

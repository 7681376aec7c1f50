import type { Command } from '../../command.ts'
import { renderHolds } from '../../render/reports.ts'
import { listCommand } from '../list-command.ts'

export const holds: Command = listCommand(
  'holds',
  'Amounts that are reserved, the overdue first',
  (observer, limit) => observer.holds({ limit }),
  renderHolds,
)

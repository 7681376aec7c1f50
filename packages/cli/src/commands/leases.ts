import type { Command } from '../command.ts'
import { renderLeases } from '../render/reports.ts'
import { listCommand } from './list-command.ts'

export const leases: Command = listCommand(
  'leases',
  'Leases, those that are held first',
  (observer, limit) => observer.leases({ limit }),
  renderLeases,
)

import { quoteIdentifier } from '../sql/identifier.ts'

/** Statements about roles, for people to run. */

export function alterRole(role: string, attribute: 'NOCREATEROLE'): string {
  return `ALTER ROLE ${quoteIdentifier(role)} ${attribute};`
}

export function leaveRole(power: string, member: string): string {
  return `REVOKE ${quoteIdentifier(power)} FROM ${quoteIdentifier(member)};`
}

export function joinRole(power: string, member: string): string {
  return `GRANT ${quoteIdentifier(power)} TO ${quoteIdentifier(member)};`
}

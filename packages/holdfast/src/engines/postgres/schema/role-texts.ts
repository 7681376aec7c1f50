import { quoteIdentifier } from '../sql/identifier.ts'

/** Statements about roles, for people to run. */

export function alterRole(role: string, attribute: 'NOCREATEROLE'): string {
  return `ALTER ROLE ${quoteIdentifier(role)} ${attribute};`
}

/** Where an attribute or an ownership is the role's by right: it may be the one that administers the server. */
export const anotherRole =
  'Let the application connect as a role of its own, and run what `holdfast grants` prints for it.'

export function leaveRole(power: string, member: string): string {
  return `REVOKE ${quoteIdentifier(power)} FROM ${quoteIdentifier(member)};`
}

export function joinRole(power: string, member: string): string {
  return `GRANT ${quoteIdentifier(power)} TO ${quoteIdentifier(member)};`
}

import { CodedError } from '#common/errors/index.ts';
import { isPlainLine } from '#common/text/index.ts';
import type { TenantStatus } from '#operations/views/tenant-store.ts';
import {
  type BreachedPasswords,
  foldEmail,
  type PasswordOwner,
  passwordFault,
} from '#service-kit/sessions/index.ts';
import type { StaffRole } from './actor.ts';

export type MembershipRole = 'owner' | 'member';

export interface Person {
  id: number;
  email: string;
  name: string;
  staffRole: StaffRole | null;
  isActive: boolean;
  /** The person has proved, or an operator vouches, that this address is theirs. */
  isVerified: boolean;
}

export interface Organization {
  id: number;
  name: string;
  createdAt: Date;
}

export interface Membership {
  organizationId: number;
  organizationName: string;
  personId: number;
  personName: string;
  personEmail: string;
  isActive: boolean;
  role: MembershipRole;
}

/** A workspace and its billing account: one id for both. */
export interface Tenant {
  id: number;
  organizationId: number;
  organizationName: string;
  name: string;
  slug: string;
  status: TenantStatus;
  currency: string;
  /** The organization's original tenant, on which its keys act unless told otherwise. */
  isPayer: boolean;
  hasBillingProfile: boolean;
  createdAt: Date;
}

export interface BillingProfile {
  legalName: string;
  email: string;
  /** Two letters, ISO 3166-1. */
  country: string;
}

const emailLengthMax = 254;

/** The stored spelling of an email address; throws `accounts.invalid` for what can't be one. */
export function parseEmail(text: string): string {
  const email = foldEmail(text);
  // Nothing that a mail program could read as a list of addresses or as another header.
  if (
    email.length > emailLengthMax ||
    !/^[^\s@<>()[\]\\,;:"\p{Cc}]+@[^\s@<>()[\]\\,;:"\p{Cc}]+$/u.test(email)
  ) {
    throw invalid('The email address must look like name@example.com.');
  }
  return email;
}

/** Throws `accounts.invalid` for a password that is too short or easily guessed. */
export async function checkPassword(breached: BreachedPasswords, password: string, owner: PasswordOwner) {
  const fault = await passwordFault(password, owner, breached);
  if (fault !== null) throw invalid(fault, 'password');
}

/**
 * A name without surrounding space; throws `accounts.invalid` when nothing or too much is left, or characters that are not
 * seen.
 */
export function parseName(text: string, what: string): string {
  const name = text.trim();
  if (name.length === 0 || name.length > 120) throw invalid(`${what} must have 1 to 120 characters.`);
  if (!isPlainLine(name)) throw invalid(`${what} must be one line without control characters.`);
  return name;
}

/**
 * As `parseName`. An organization invites people by mail, whose programs make links of addresses: a name with one would
 * let a customer mail links of their own to strangers.
 */
export function parseOrganizationName(text: string): string {
  const name = parseName(text, 'The name of an organization');
  if (/:\/\/|@|\bwww\.|[\p{L}\p{N}-][.。]\p{L}{2,}/iu.test(name.normalize('NFKC')))
    throw invalid('The name of an organization must not have a web or mail address in it.');
  return name;
}

/** A slug made from a name: lower case, dashes, never all digits (those would read as an id). */
export function slugOf(name: string): string {
  const slug = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 60)
    .replace(/^-+|-+$/g, '');
  if (slug === '') return 'tenant';
  return /^\d+$/.test(slug) ? `t-${slug}` : slug;
}

/** The refusal of what a person typed; `field` names the field of the form. */
export function invalid(message: string, field?: string): CodedError {
  return new CodedError('accounts.invalid', message, field === undefined ? {} : { field });
}

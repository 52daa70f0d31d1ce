import { CodedError } from '#common/errors/index.ts';
import type { StaffRole } from './actor.ts';

export type TenantStatus = 'ACTIVE' | 'SUSPENDED' | 'CLOSED';
export type MembershipRole = 'owner' | 'member';

export interface Person {
  id: number;
  email: string;
  name: string;
  staffRole: StaffRole | null;
  isActive: boolean;
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
const passwordLengthMin = 10;
const passwordLengthMax = 200;

/** The stored spelling of an e-mail address; throws `accounts.invalid` for what can't be one. */
export function parseEmail(text: string): string {
  const email = text.trim().toLowerCase();
  if (email.length > emailLengthMax || !/^[^\s@]+@[^\s@]+$/.test(email)) {
    throw invalid('The e-mail address must look like name@example.com.');
  }
  return email;
}

/** Throws `accounts.invalid` for a password that is too short to be worth hashing, or absurdly long. */
export function checkPassword(password: string): void {
  if (password.length < passwordLengthMin || password.length > passwordLengthMax) {
    throw invalid(`A password has ${passwordLengthMin} to ${passwordLengthMax} characters.`);
  }
}

/** A name without surrounding space; throws `accounts.invalid` when nothing or too much is left. */
export function parseName(text: string, what: string): string {
  const name = text.trim();
  if (name.length === 0 || name.length > 120) throw invalid(`${what} must have 1 to 120 characters.`);
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

export function invalid(message: string): CodedError {
  return new CodedError('accounts.invalid', message);
}

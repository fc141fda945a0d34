import type { Route } from '../../services.ts';
import { login } from './login.ts';
import { register } from './register.ts';
import { verifyOtp } from './verify-otp.ts';

export const authRoutes: readonly Route[] = [register, login, verifyOtp];
